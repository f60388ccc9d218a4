"""`backburner doctor`."""

import sys

from backburner.cli import exits, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import place
from backburner.cli.table import Cell, Column, Table

EXAMPLES = ("backburner doctor", "backburner doctor --home /srv/backburner --json")

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def command(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """Check this machine and this home.

    Can the promises be kept here? Each check is ok, warn (it works, and not as well as it could)
    or fail; exits with 1 when one fails. What is not well is said with why it matters and what to
    do: also what would end tasks at a logout or with a container. Nothing that it tries out stays.
    """
    from backburner.cli.checks import Level, examine

    findings = list(examine(place(home, session)))
    if as_json:
        say.document(
            [
                {
                    "check": finding.check,
                    "level": finding.level.value,
                    "text": finding.text,
                    "why": finding.why or None,
                    "remedy": finding.remedy or None,
                }
                for finding in findings
            ]
        )
    else:
        table = Table(
            [Column(""), Column(""), Column("", least=30)],
            width=terminal.width(sys.stdout),
            colours=terminal.shows_colours(sys.stdout),
        )
        rows = [
            [Cell(finding.level.value, _COLOURS[finding.level]), finding.check, finding.text]
            for finding in findings
        ]
        for line, finding in zip(table.lines(rows), findings, strict=True):
            say.data(line)
            if finding.why:
                say.data(f"      {finding.why}")
            if finding.remedy:
                say.data(f"      → {finding.remedy}")
    failed = any(finding.level is Level.FAIL for finding in findings)
    return exits.FAILED if failed else exits.DONE
