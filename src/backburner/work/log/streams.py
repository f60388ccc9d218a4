"""Marking the lines of a log with the stream that each was written to (E6)."""


class StreamMarks:
    """Remembers whether a line is unfinished, and whose it is. For one writer at a time."""

    __slots__ = ("_unfinished",)

    def __init__(self) -> None:
        self._unfinished: str | None = None

    def marked(self, stream: str, text: str) -> str:
        """A piece of output, which need not be whole lines, as it stands in the log."""
        parts: list[str] = []
        if self._unfinished not in (None, stream):
            parts.append("\n")
            self._unfinished = None
        for line in text.splitlines(keepends=True):
            if self._unfinished is None:
                parts.append(f"[{stream}] ")
            parts.append(line)
            self._unfinished = None if line.endswith(("\n", "\r")) else stream
        return "".join(parts)
