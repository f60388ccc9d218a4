"""Names of tasks: `bg_` and 16 characters of Crockford base 32, 80 random bits.

Not guessable, and a prefix is enough for a person. A caller may choose an id of their own to make
a start idempotent; it is a folder name too, so the alphabet is narrow.
"""

import hashlib
import os
import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
PREFIX = "bg_"
_LENGTH = 16
_OF_BYTE = 8 * ALPHABET.encode()
"""The character that a random byte stands for."""
_CHOSEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


_AT_ONCE = 64
"""To ask the kernel for random bits costs ten times as much as the rest of an id."""

_ready: list[str] = []


def new_id() -> str:
    """A fresh id."""
    while True:
        try:
            return _ready.pop()  # by one thread only, whatever others do
        except IndexError:
            text = os.urandom(_LENGTH * _AT_ONCE).translate(_OF_BYTE).decode()
            _ready.extend(PREFIX + text[at : at + _LENGTH] for at in range(0, len(text), _LENGTH))


os.register_at_fork(after_in_child=_ready.clear)  # or the child would give out the same ones


def id_for(*parts: str) -> str:
    """The id that belongs to these words: whoever says the same again means the same."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=10).digest()
    number = int.from_bytes(digest, "big")
    return PREFIX + "".join(ALPHABET[number >> 5 * place & 31] for place in range(_LENGTH))


def is_valid(text: str) -> bool:
    """Whether ``text`` may be used as an id, or as the prefix of one."""
    return _CHOSEN.fullmatch(text) is not None
