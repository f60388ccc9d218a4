"""What a gateway notes: it knows after a crash what it knew, and is bounded."""

import contextlib
import os
from pathlib import Path

import pytest

from backburner.gateway import journal as journal_module
from backburner.gateway.journal import Journal
from backburner.gateway.letters import written
from backburner.gateway.platform import Limits, Person, Place
from backburner.gateway.platform import Message as Heard


def message(key: str) -> Heard:
    return Heard(key, Place("c1"), Person("ada", "Ada"), "hello")


def test_a_journal_knows_what_it_knew(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    first = Journal(path)
    assert first.hear(message("1"))
    assert first.hear(message("2"))
    first.finish(message("1"))
    limits = Limits(100, len, 0)
    letter = written("a", Place("c1"), "x " * 200, limits, covers=("s1",))
    first.record(letter)
    first.post_made("a", "p1")
    first.close()
    with open(path, "ab") as file:
        file.write(b'{"done": "m c1')  # a crash in the middle of a line
    for _ in range(2):
        again = Journal(path)
        assert not again.hear(message("1"))
        assert [each.heard for each in again.unfinished()] == [message("2")]
        assert again.on_its_way("a") == letter
        assert again.posted("a") == 1
        assert again.letter_telling("s1") == "a"
        again.close()
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_journal_survives_a_full_disk_and_lines_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    path.write_text(
        '{"letter": {}}\n{"letter": 5}\n{"card": "x", "post": "p"}\n{"heard": "k", "what": {}}\n'
        '{"new": 1}\n'
    )
    with contextlib.closing(Journal(str(path))) as journal:
        assert journal.unfinished() == []
        write = os.write

        def full(fd: int, data: bytes) -> int:
            return write(fd, data[:5])  # as much as there is room for

        with monkeypatch.context() as disk:
            disk.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space left"):
                journal.hear(message("1"))
        assert journal.hear(message("1")), "told again, it is heard"
    with contextlib.closing(Journal(str(path))) as again:
        assert [each.heard for each in again.unfinished()] == [message("1")]


def test_a_journal_knows_an_answer_that_was_announced_once_and_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "journal")
    with contextlib.closing(Journal(path)) as journal:
        journal.await_answer("ada", "bg_1", "q")
        journal.await_answer("bob", "bg_2", "q")
    with contextlib.closing(Journal(path)) as journal:
        assert journal.take_awaited("ada") == ("bg_1", "q")
        assert journal.take_awaited("ada") is None
        monkeypatch.setattr(journal_module, "ANNOUNCED_S", -1)
        assert journal.take_awaited("bob") is None


def test_a_journal_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "KNOWN_MAX", 50)
    monkeypatch.setattr(journal_module, "_LINES_MAX", 200)
    path = str(tmp_path / "journal")
    with contextlib.closing(Journal(path)) as journal:
        for number in range(400):
            journal.hear(message(str(number)))
            journal.finish(message(str(number)))
            assert len(Path(path).read_bytes().splitlines()) <= 250
        assert not journal.hear(message("399"))
        assert journal.hear(message("0")), "forgotten by now"
