"""B4: what goes with a prompt, read within limits."""

import os
from pathlib import Path

import pytest

from backburner import Attachment, Image, LimitReached, NotFound, UsageError
from backburner.model.limits import ATTACHMENT_MAX_BYTES, ATTACHMENTS_MAX
from backburner.work.agents.attachments import attached
from backburner.work.agents.command import with_attachments

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def test_b4_what_a_file_is_comes_from_how_it_begins_and_from_its_name(tmp_path: Path) -> None:
    (tmp_path / "wrong.txt").write_bytes(PNG)
    (tmp_path / "notes.md").write_text("# Notes")
    (tmp_path / "unknown").write_text("text")
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    kinds = [
        each.media_type
        for each in attached(
            [
                tmp_path / "wrong.txt",
                str(tmp_path / "notes.md"),
                tmp_path / "unknown",
                tmp_path / "binary",
                PNG,
                b"\xff\xd8\xff\xe0",
                b"RIFF\0\0\0\0WEBPVP8 ",
                Image(b"x", "image/webp", "a.webp"),
                Attachment(b"x", "text/csv"),
            ]
        )
    ]
    assert kinds == [
        *("image/png", "text/markdown", "text/plain", "application/octet-stream"),
        *("image/png", "image/jpeg", "image/webp", "image/webp", "text/csv"),
    ]


def test_bytes_that_do_not_say_what_they_are_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be told"):
        attached([b"what is this?"])


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UsageError, match="no plain file"):
            attached([path])
    with pytest.raises(NotFound):
        attached([tmp_path / "nothing"])
    with pytest.raises(UsageError, match="NUL"):
        attached(["a\0b"])


def test_attachments_are_limited_in_number_and_size(tmp_path: Path) -> None:
    with pytest.raises(LimitReached, match=f"{ATTACHMENTS_MAX}, the limit"):
        attached([PNG] * (ATTACHMENTS_MAX + 1))
    large = tmp_path / "large.png"
    large.write_bytes(PNG)
    os.truncate(large, ATTACHMENT_MAX_BYTES - 8)
    attached([large])
    with pytest.raises(LimitReached, match="32 MiB"):
        attached([large, PNG])
    os.truncate(large, ATTACHMENT_MAX_BYTES + 1)
    with pytest.raises(LimitReached, match="32 MiB"):
        attached([large])


def test_a_program_is_told_where_attached_files_lie(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    files = attached([tmp_path / "a.txt"])
    assert with_attachments("sum up", files) == f"sum up\n\nAttached files:\n{tmp_path / 'a.txt'}"
    assert with_attachments("sum up", ()) == "sum up"
    with pytest.raises(UsageError, match="by their paths"):
        with_attachments("sum up", attached([PNG]))


def test_an_attachment_does_not_show_its_bytes() -> None:
    assert "secret" not in repr(Attachment(b"secret", "text/plain", "a.txt"))
