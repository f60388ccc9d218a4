"""The key that leaves an attached terminal, in every way in which a terminal may send it."""

from backburner.model.errors import UsageError
from backburner.model.values import value

_ALLOWED = "ABCDEFGHKLNOPQRSTUVWXYZ\\]^_"
"""Not I, J, M and [: those are Tab, Enter and the begin of every arrow key."""


@value
class DetachKey:
    """Control and a character."""

    character: str

    @classmethod
    def parse(cls, text: str) -> "DetachKey":
        """From `ctrl-a`, `^A`, `C-a`."""
        lower = text.strip().lower()
        for prefix in ("ctrl-", "ctrl+", "c-", "^"):
            rest = lower.removeprefix(prefix)
            if rest != lower and len(rest) == 1 and rest.upper() in _ALLOWED:
                return cls(rest.upper())
        raise UsageError(
            f"--detach-key: {text!r} cannot be used",
            remedy="give Ctrl and a letter or one of \\ ] ^ _, for example ctrl-a; "
            "not the keys that are Tab, Enter and Escape (i, j, m, [)",
        )

    def __str__(self) -> str:
        return f"Ctrl-{self.character}"

    def split(self, keys: bytes) -> tuple[bytes, bool]:
        """What was typed before it, and whether it was typed."""
        found = [at for at in map(keys.find, self._spellings()) if at >= 0]
        return (keys[: min(found)], True) if found else (keys, False)

    def _spellings(self) -> tuple[bytes, ...]:
        code = ord(self.character.lower())
        return (
            bytes([ord(self.character) & 0x1F]),
            # A job may have asked to be told all keys apart: the protocols of kitty and xterm.
            f"\x1b[{code};5u".encode(),
            f"\x1b[27;5;{code}~".encode(),
        )
