"""The table that a person reads."""

from collections.abc import Sequence

from bench.measure import Row

_HEAD = ("name", "ours", "raw limit", "ratio", "(rounds)", "target", "met")


def table(rows: Sequence[Row]) -> str:
    """All rows, one line each, and under them what else there is to say."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = [
        "  ".join(
            text.ljust(width) if column in (0, 5, 6) else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"  {row.name}: {note}" for row in rows for note in row.notes]
    return "\n".join([*lines, *(["", "notes", *notes] if notes else [])])


def _cells(row: Row) -> tuple[str, ...]:
    met = {True: "yes", False: "NO", None: "–"}[row.met]
    return (
        row.name,
        _quantity(row.ours, row.unit) if row.ours is not None else "not run",
        _quantity(row.raw, row.unit) if row.raw is not None else "–",
        f"{row.ratio:.2f}x" if row.ratio is not None else "–",
        f"{row.spread[0]:.2f}–{row.spread[1]:.2f}" if row.spread else "–",
        str(row.target) if row.target else "printed",
        met,
    )


def _quantity(value: float, unit: str) -> str:
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f} {unit}"
