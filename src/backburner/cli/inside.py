"""What a script does inside a job, for the calls that it makes in loops: status, progress, result.

Loads almost nothing. Does what it is asked, or nothing at all and answers None: help, mistakes and
failures are left to `taking_part`, so that there is one place that explains.
"""

import sys

from backburner.work.reporting import append, quoted, report_path

_TEXT_MAX_CHARS = 4000
"""More of a text would be cut anyway."""

_AMOUNT_MAX = 10**15


def try_quickly(argv: list[str]) -> int | None:
    """Carry out a plain `status`, `progress` or `result`. Answers the exit status."""
    read = _READERS.get(argv[0])
    line = read(argv[1:]) if read else None
    if line is None:
        return None
    try:
        path = report_path()
        if path is not None:
            append(path, argv[0], line)
        else:
            sys.stderr.write(outside(argv[0], " ".join(argv[1:])))
    except (OSError, AttributeError, ValueError):  # without a standard error, too
        return None
    return 0


def outside(command: str, text: str) -> str:
    """What is said where there is no job: it is harmless to run such a script by hand."""
    shown = text if len(text) <= 200 else f"{text[:199]}…"  # noqa: PLR2004 - one line is enough
    return f"backburner: not in a job; {command}: {ascii(shown)[1:-1]}\n"


def _status(words: list[str]) -> str | None:
    if len(words) != 1 or words[0].startswith("-") or not words[0].strip():
        return None
    return quoted(words[0][:_TEXT_MAX_CHARS])


def _progress(words: list[str]) -> str | None:
    options: dict[str, str] = {}
    numbers: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--unit", "--label"):
            following = value if equals else next(rest, "-")
            if not equals and following.startswith("-"):
                return None
            options[name[2:]] = quoted(following[:_TEXT_MAX_CHARS])
        elif not word.isascii() or not word.replace(".", "", 1).isdigit():
            return None
        else:
            numbers.append(word)
    if not 1 <= len(numbers) <= 2:  # noqa: PLR2004 - current and total
        return None
    amounts = [float(each) if "." in each else int(each) for each in numbers]
    if max(amounts) > _AMOUNT_MAX or amounts[1:] == [0]:
        return None
    parts = {"current": amounts[0], **({"total": amounts[1]} if amounts[1:] else {}), **options}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}"


def _result(words: list[str]) -> str | None:
    if len(words) != 1 or (words[0].startswith("-") and not words[0][1:2].isdigit()):
        return None
    import json

    def refuse(text: str) -> None:
        raise ValueError(text)

    try:
        return json.dumps(json.loads(words[0], parse_constant=refuse), allow_nan=False)
    except (ValueError, RecursionError):
        return None


_READERS = {"status": _status, "progress": _progress, "result": _result}
