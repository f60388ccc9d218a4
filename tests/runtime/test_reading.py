"""A7, X3: reading by cursor while the job writes and its log is cut: no byte twice, none unsaid."""

from pathlib import Path

import pytest

from backburner import Backburner, Chunk, Settings
from backburner.model.errors import StoreError
from backburner.runtime.output import read_task_bytes
from tests.waiting import pause_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

SMALL = Settings(log_head=8 * 1024, log_tail=64 * 1024)


class Reader:
    """Goes through a log of numbers of seven digits, and checks each piece as it comes."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.last = 0
        self.notes = 0
        self.pieces = 0

    def take(self, chunk: Chunk) -> None:
        """Numbers follow each other, unless a line between them says that some are missing."""
        expected: int | None = self.last + 1
        for line in chunk.text.splitlines():
            if line.startswith("…"):
                self.notes += 1
                expected = None
            elif len(line) == 7:
                assert expected in (None, int(line)), f"{line} comes after {self.last}"
                assert int(line) > self.last, f"{line} comes twice"
                self.last = int(line)
                expected = self.last + 1
            else:
                expected = -1  # cut in two: only before a note
        self.cursor = chunk.cursor
        self.pieces += bool(chunk.text)


WHOLE = """
seq -w 1000000 | head -n 5000 | while read n; do
    echo $n
    case $n in *000) until test -e $n; do sleep 0.01; done;; esac
done
"""
"""Waits for its reader after each thousand."""


@pytest.mark.parametrize(
    ("line", "last"), [(WHOLE, 5000), ("seq -w 4000000", 4000000)], ids=["whole", "cut"]
)
async def test_a7_pieces_make_up_the_whole(
    shared_home: Path, tmp_path: Path, line: str, last: int
) -> None:
    """Whether the log stays whole, or loses its middle again and again while it is read."""
    reader = Reader()
    async with Backburner.open(shared_home, settings=SMALL) as bb:
        task = await bb.session("reading").run(line, cwd=tmp_path)
        complete = False
        while not complete:
            # `grep` waits for the end of a line, so that a piece ends with one.
            chunk = await task.output(since=reader.cursor, max_chars=None, grep=".", raw=True)
            complete = chunk.complete
            reader.take(chunk)
            if line is WHOLE and reader.last and reader.last % 1000 == 0:
                (tmp_path / f"{reader.last:07}").touch()
            await pause_async(0.001, because="the writer is somewhere else at each read")
        assert reader.cursor == task.document()["output"]["cursor"] == f"1.{8 * last}"
    assert reader.last == last
    assert reader.pieces > 2, "it was over before it could be read in pieces"
    assert task.record.dropped_bytes > 0 or reader.notes == 0


@pytest.mark.parametrize("put", ["mkdir {log}", "mkfifo {log}", "echo 1 >{log}; echo 1 >{log}.map"])
async def test_x1_a_job_that_breaks_its_log_ends_and_is_described_all_the_same(
    home: Path, put: str
) -> None:
    log = "$BACKBURNER_HOME/tasks/$BACKBURNER_TASK_ID.1/output.log"
    async with Backburner.open(home) as bb:
        task = await bb.session("chat").run(f"rm {log}; {put.format(log=log)}; exit 3")
        await task.wait(timeout=60)
        assert task.record.exit_code == 3
        assert task.document()["exit_code"] == 3
        chunk = await task.output()
        assert "[the output cannot be read: " in chunk.text
        assert chunk.complete
        again = await task.output(since=chunk.cursor)
        assert (again.text, again.cursor) == ("", chunk.cursor)
        with pytest.raises(StoreError, match="cannot be read"):
            read_task_bytes(bb.home, task.record)
