"""What a program has switched a terminal to: the other screen, mouse reports, a hidden cursor.

Whoever sees only the last of the output needs these first; whoever leaves has to take them back.
"""

_OPENING = b"\x1b[?"
_LONGEST = 32
"""Of a sequence that is not whole yet."""

_AT_REST = {b"25": True}
"""A cursor is seen unless told; everything else is off."""
_TRACKED = frozenset(b"1 25 47 1000 1002 1003 1004 1005 1006 1015 1047 1049 2004".split())


class Modes:
    """The private modes of a terminal, as far as they matter to the next program."""

    def __init__(self) -> None:
        self._changed: dict[bytes, bool] = {}
        self._rest = b""

    def feed(self, output: bytes) -> None:
        """Note what this switches."""
        if b"\x1b" not in output and not self._rest:
            return
        text = self._rest + output
        self._rest = b""
        at = text.find(_OPENING)
        while at >= 0:
            end = at + len(_OPENING)
            while end < len(text) and text[end] in b"0123456789;":
                end += 1
            if end == len(text):
                break
            if text[end] in b"hl":
                self._switch(text[at + len(_OPENING) : end], on=text[end] == ord("h"))
            at = text.find(_OPENING, end)
        tail = (
            text[at:] if at >= 0 else text[text.rfind(b"\x1b") :] if b"\x1b" in text[-2:] else b""
        )
        if len(tail) <= _LONGEST:
            self._rest = tail

    def _switch(self, numbers: bytes, *, on: bool) -> None:
        for number in numbers.split(b";"):
            if number in _TRACKED:
                if on == _AT_REST.get(number, False):
                    self._changed.pop(number, None)
                else:
                    self._changed[number] = on

    def redo(self) -> bytes:
        """What brings a fresh terminal to the same."""
        return b"".join(_sequence(number, on=on) for number, on in self._changed.items())

    def undo(self) -> bytes:
        """What brings a terminal in this condition to rest."""
        return b"".join(_sequence(number, on=not on) for number, on in self._changed.items())


def _sequence(number: bytes, *, on: bool) -> bytes:
    return _OPENING + number + (b"h" if on else b"l")
