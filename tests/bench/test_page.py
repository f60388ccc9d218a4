"""What was measured gets into the page on scale, all of it, and nothing else changes there."""

import json
import re
from pathlib import Path

import pytest

from bench.measure import Pairs, Row
from bench.simulation import page

ROWS = [
    Row("a task costs its worker", 4.09, "ms"),
    Row("the model: commands, 2 machines", 21.0, "/s", raw=20.0, ratio=1.05, notes=["2 cores"]),
    Row("on paper: most that one cell carries", 100.0, "/s"),
    Row("on paper: 10 cells", 590.0, "/s", raw=600.0, ratio=0.98, notes=["p50 3 ms"]),
    Row("what if: 8 cores of the database", 150.0, "/s", raw=100.0, ratio=1.5),
    Row("what if: no lock", 105.0, "/s", raw=100.0, ratio=1.05),
    Row("what if: commits that wait 5 ms", 80.0, "/s", raw=100.0, ratio=0.8),
    Row(
        "what if: commits that wait 5 ms, 8 cores of the database", 88.0, "/s", raw=80.0, ratio=1.1
    ),
    Row("what if: commits that wait 5 ms, no lock", 120.0, "/s", raw=80.0, ratio=1.5),
    Pairs([20.0, 21.0, 22.0], [40.0, 42.0, 40.0]).row(
        "commands, 2 machines", "/s", notes=["ours: 3 ms", "Procrastinate: 1 ms"]
    ),
    Row("100 tasks that print, full logs", 3.0, "% of a core", notes=["1", "while silent 2", "3"]),
]


def test_the_page_is_filled_from_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, copy = tmp_path / "scale.json", tmp_path / "scale.md"
    rows = [row.document() for row in ROWS]
    measured.write_text(
        json.dumps({"machine": "a machine", "quick": False, "rows": rows, "crashed": []})
    )
    before = page.PAGE.read_text()
    copy.write_text(before)
    monkeypatch.setattr(page, "PAGE", copy)
    monkeypatch.setattr("sys.argv", ["page", str(measured)])
    page.main()
    after = copy.read_text()
    for told in (
        "a machine",
        "4.09 ms",
        "1.05",
        "590 /s",
        "28 cells for a million",
        "| no lock | 105 /s | 100 /s | 1.05 |",
        "Most is gained with 8 cores of the database; with commits that wait 5 ms, it is with no ",
        "0.50 (0.50 to 0.55) | 3 ms",
        "1; 3",
    ):
        assert told in after
    block = re.compile(r"<!-- [a-z]+ -->.*?<!-- end -->", re.DOTALL)
    assert len(block.findall(after)) == 7
    assert block.sub("", after) == block.sub("", before)
    heads = re.compile(r"^\|.*\|$(?=\n\| ---)", re.MULTILINE)
    assert heads.findall(after) == heads.findall(before), "what is measured has changed: do it anew"
