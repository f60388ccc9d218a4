"""Secrets on their way into a record that many machines share: environments, keys of webhooks.

The record keeps them apart from its rows (`store/postgres/sql`, the table `secret`) and only until
they were used. With BACKBURNER_SECRET, the same on every machine, they are sealed before they leave
this process: whoever reads the database, its log or a copy of it finds nothing. What is sealed is
bound to what it belongs to, so that it opens nowhere else. Without it they lie there as they are.
"""

import base64
import binascii
import os
from typing import TYPE_CHECKING

from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "BACKBURNER_SECRET"
MARK = "secret:"
"""How a text begins that the record keeps apart, under a name that it makes up."""
_PLAIN, _SEALED = "plain:", "sealed:"
_NONCE_BYTES = 12
_SHORTEST = 16
"""Characters: a key is made by a program, and not thought up."""


def seal(text: str, subject: str) -> str:
    """What is given to the record in the place of a name. UsageError where that cannot be."""
    keys = _keys()
    if not keys:
        return f"{MARK}{_PLAIN}{text}"
    nonce = os.urandom(_NONCE_BYTES)
    data = nonce + _cipher(keys[0]).encrypt(nonce, text.encode(), subject.encode())
    return f"{MARK}{_SEALED}{base64.b64encode(data).decode()}"


def unseal(kept: str, subject: str) -> str:
    """What was sealed; ValueError where it cannot be opened here."""
    if kept.startswith(_PLAIN):
        return kept.removeprefix(_PLAIN)
    keys = _keys()
    if not keys:
        raise ValueError(f"it is sealed, and {VARIABLE} is not set on this machine")
    from cryptography.exceptions import InvalidTag  # an extra, and slow to load

    try:
        data = base64.b64decode(kept.removeprefix(_SEALED), validate=True)
    except binascii.Error:
        raise ValueError("it is broken") from None
    for key in keys:
        try:
            opened = _cipher(key).decrypt(
                data[:_NONCE_BYTES], data[_NONCE_BYTES:], subject.encode()
            )
        except InvalidTag:
            continue
        return opened.decode()
    raise ValueError(f"it was sealed with another {VARIABLE} than this machine has")


def check_secret() -> None:
    """UsageError where nothing could be sealed or opened with what is set.

    For who begins to work: else each task that is sealed would fail there, for good.
    """
    if keys := _keys():
        _cipher(keys[0])


def _keys() -> list[str]:
    """The first one seals, all of them open: so a key is replaced without losing what is there."""
    given = os.environ.get(VARIABLE, "")
    keys = given.split()
    if given and not keys:  # who set it wants to have sealed what would lie there as it is
        raise UsageError(
            f"{VARIABLE} is set, and blank",
            remedy="make one, for example with: openssl rand -base64 32; or leave it unset",
        )
    if any(len(key) < _SHORTEST for key in keys):
        raise UsageError(
            f"{VARIABLE} is shorter than {_SHORTEST} characters",
            remedy="make one, for example with: openssl rand -base64 32",
        )
    return keys


def _cipher(key: str) -> "AESGCM":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise UsageError(
            f"{VARIABLE} is set, and the library that seals is missing",
            remedy='pip install "backburner[postgres]"',
        ) from None
    derived = HKDF(SHA256(), length=32, salt=None, info=b"backburner sealing")
    return AESGCM(derived.derive(key.encode()))
