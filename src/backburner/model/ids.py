"""Names of tasks: `bg_` and 16 characters of Crockford base 32, 80 random bits.

Not guessable, and a prefix is enough for a person. A caller may choose an id of their own to make
a start idempotent; it is a folder name too, so the alphabet is narrow.
"""

import hashlib
import re
import secrets

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
PREFIX = "bg_"
_LENGTH = 16
_CHOSEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


def new_id() -> str:
    """A fresh id."""
    number = secrets.randbits(5 * _LENGTH)
    return PREFIX + "".join(ALPHABET[number >> 5 * place & 31] for place in range(_LENGTH))


def id_for(*parts: str) -> str:
    """The id that belongs to these words: whoever says the same again means the same."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=10).digest()
    number = int.from_bytes(digest, "big")
    return PREFIX + "".join(ALPHABET[number >> 5 * place & 31] for place in range(_LENGTH))


def is_valid(text: str) -> bool:
    """Whether ``text`` may be used as an id, or as the prefix of one."""
    return _CHOSEN.fullmatch(text) is not None
