"""Findings as people and programs read them."""

import sys
from collections.abc import Iterable

from backburner.cli import exits, say, terminal
from backburner.cli.checks.finding import Finding, Level
from backburner.cli.table import Cell, Column, Table

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def print_findings(found: Iterable[Finding], *, as_json: bool) -> int:
    """Answers the exit status: 1 where a check failed."""
    findings = list(found)
    if as_json:
        say.document([_document(finding) for finding in findings])
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


def _document(finding: Finding) -> dict[str, str | None]:
    return {
        "check": finding.check,
        "level": finding.level.value,
        "text": finding.text,
        "why": finding.why or None,
        "remedy": finding.remedy or None,
    }
