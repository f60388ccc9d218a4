"""`python -m bench.simulation.page FILE`: put what was measured into docs/scale.md.

FILE is what `python -m bench simulation machines-growth machines-logs --json FILE` has written.
What stands between `<!-- NAME -->` and `<!-- end -->` is made here, and nothing else changes.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.simulation.check import LOAD
from bench.simulation.whatif import SLOW_COMMITS

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
_BLOCK = re.compile(r"(<!-- ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MILLION = 1_000_000
_HOUR_S = 3600.0
_WHAT_IF = "what if: "

Row = dict[str, Any]


def main() -> None:
    """The command."""
    document = json.loads(Path(sys.argv[1]).read_text())
    if document["crashed"]:
        sys.exit(f"not all of it was measured: {', '.join(document['crashed'])} crashed")
    page = PAGE.read_text()
    PAGE.write_text(_BLOCK.sub(lambda found: _filled(found, document), page))


def _filled(found: "re.Match[str]", document: Row) -> str:
    before, name, after = found.groups()
    return f"{before}{_BLOCKS[name](document)}{after}"


def _machine(document: Row) -> str:
    effort = "a quick run" if document["quick"] else "a full run"
    return f"{document['machine']}; {effort}.\n"


def _costs(document: Row) -> str:
    lines = ["| of one command that does nothing | |", "| --- | --- |"]
    lines += [
        f"| {row['name']} | {row['ours']:.2f} {row['unit']} |"
        for row in document["rows"]
        if row["name"].startswith(("a task ", "a commit ", "a place "))
    ]
    return _text(lines)


def _check(document: Row) -> str:
    rows = _rows(document, "the model: ")
    lines = ["| | the model | was | ratio | while |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {row['name'].removeprefix('the model: ')} | {row['ours']:.1f} /s | {row['raw']:.1f} /s "
        f"| {row['ratio']:.2f} | {row['notes'][0]} |"
        for row in rows
    ]
    ratios = [row["ratio"] for row in rows]
    return _text([*lines, "", f"The ratios are {min(ratios):.2f} to {max(ratios):.2f}."])


def _paper(document: Row) -> str:
    most, *cells = _rows(document, "on paper: ")
    lines = [
        f"At most {most['ours']:.0f} tasks a second in one cell.",
        "",
        "| | offered | carried | |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['name'].removeprefix('on paper: ')} | {row['raw']:,.0f} /s "
        f"| {row['ours']:,.0f} /s | {row['notes'][0]} |"
        for row in cells
    ]
    a_cell = LOAD * most["ours"]
    needs = [
        f"{math.ceil(_MILLION * an_hour / _HOUR_S / a_cell)} cells for a million sessions "
        f"that each start {what}"
        for an_hour, what in ((1 / 24, "one task a day"), (1, "one an hour"), (6, "six an hour"))
    ]
    return _text([*lines, "", f"At six tenths of that: {'; '.join(needs)}."])


def _whatif(document: Row) -> str:
    """Ends with what is met first: what the cell gains most without."""
    rows = _rows(document, _WHAT_IF)
    as_measured = [row for row in rows if SLOW_COMMITS not in row["name"]]
    slowly = [row for row in rows if f"{SLOW_COMMITS}, " in row["name"]]
    first, then = (_most_gained(of) for of in (as_measured, slowly))
    lines = ["| what if | at most | instead of | ratio |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row['name'].removeprefix(_WHAT_IF)} | {row['ours']:,.0f} /s | {row['raw']:,.0f} /s "
        f"| {row['ratio']:.2f} |"
        for row in rows
    ]
    met = f"Most is gained with {first}; with {SLOW_COMMITS}, it is with {then}."
    return _text([*lines, "", met])


def _most_gained(rows: list[Row]) -> str:
    best: str = max(rows, key=lambda row: row["ratio"])["name"]
    return best.removeprefix(_WHAT_IF).removeprefix(f"{SLOW_COMMITS}, ")


def _logs(document: Row) -> str:
    rows = [row for row in document["rows"] if "tasks that print" in row["name"]]
    lines = [f"- {row['name']}: {row['notes'][0]}; {row['notes'][2]}." for row in rows]
    if rows:
        silent: str = rows[0]["notes"][1]
        lines.append(f"- {silent[0].upper()}{silent[1:]}.")
    return _text(lines)


def _growth(document: Row) -> str:
    lines = [
        "| | ours | Procrastinate alone | ratio, of five rounds | of the database, ours |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in document["rows"]:
        if row["name"].startswith(("work that waits, ", "commands, ")) and row["raw"]:
            said = next(note for note in row["notes"] if note.startswith("ours: "))
            cost = said.removeprefix("ours: ")
            least, most = row["spread"]
            lines.append(
                f"| {row['name']} | {row['ours']:.1f} /s | {row['raw']:.1f} /s "
                f"| {row['ratio']:.2f} ({least:.2f} to {most:.2f}) | {cost} |"
            )
    return _text(lines)


def _rows(document: Row, begins: str) -> list[Row]:
    return [row for row in document["rows"] if row["name"].startswith(begins)]


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


_BLOCKS: dict[str, Callable[[Row], str]] = {
    "machine": _machine,
    "costs": _costs,
    "check": _check,
    "paper": _paper,
    "whatif": _whatif,
    "logs": _logs,
    "growth": _growth,
}


if __name__ == "__main__":
    main()
