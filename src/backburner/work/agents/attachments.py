"""Files that go with a prompt: read here and now, within limits, with what they are."""

import mimetypes
import os
import stat
from collections.abc import Sequence
from typing import Any

from backburner.model.errors import LimitReached, UsageError
from backburner.model.limits import ATTACHMENT_MAX_BYTES, ATTACHMENTS_MAX
from backburner.model.outcome import Image
from backburner.model.values import value
from backburner.work.named_file import open_to_read

_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
"""How files begin that are often sent without a name."""


@value
class Attachment:
    """A file that goes with a prompt."""

    data: bytes
    media_type: str
    name: str | None = None
    path: str | None = None
    """Where it lies, if it was given by its path."""

    def __repr__(self) -> str:
        return f"<Attachment {self.name!r} {self.media_type}, {len(self.data)} bytes>"

    def document(self) -> dict[str, Any]:
        """What the record says of it."""
        return {"name": self.name, "media_type": self.media_type, "bytes": len(self.data)}


Attachable = Attachment | Image | bytes | str | os.PathLike[str]
"""What can be attached; a text is a path."""


def attached(given: Sequence[Attachable]) -> tuple[Attachment, ...]:
    """All of them, read. LimitReached, NotFound, NotAllowed, UsageError."""
    if len(given) > ATTACHMENTS_MAX:
        raise LimitReached(
            f"{len(given)} attachments are more than {ATTACHMENTS_MAX}, the limit of one prompt",
            remedy="put several files into one",
        )
    found: list[Attachment] = []
    room = ATTACHMENT_MAX_BYTES
    for each in given:
        one = _attachment(each, room)
        room -= len(one.data)
        if room < 0:
            raise _too_large()
        found.append(one)
    return tuple(found)


def _attachment(given: Attachable, room: int) -> Attachment:
    match given:
        case Attachment():
            return given
        case Image():
            return Attachment(given.data, given.media_type, given.name)
        case bytes():
            return Attachment(given, _media_type(None, given))
        case _:
            path = os.path.abspath(_path(given))
            data = _read(path, room)
            name = os.path.basename(path)
            return Attachment(data, _media_type(name, data), name, path)


def _path(given: str | os.PathLike[str]) -> str:
    return os.fspath(given)


def _read(path: str, room: int) -> bytes:
    fd = open_to_read(path)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{path!r} is no plain file", remedy="attach a plain file")
        if status.st_size > room:
            raise _too_large()
        with open(fd, "rb", closefd=False) as file:
            return file.read(room + 1)  # it may have grown meanwhile
    finally:
        os.close(fd)


def _too_large() -> LimitReached:
    return LimitReached(
        f"the attachments are larger than {ATTACHMENT_MAX_BYTES // 2**20} MiB, the limit of one "
        "prompt",
        remedy="make pictures smaller, or give the agent a tool that reads the file",
    )


def _media_type(name: str | None, data: bytes) -> str:
    """By how it begins, else by its name: a name says what somebody thought."""
    for mark, media_type in _MARKS:
        if data.startswith(mark):
            return media_type
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if name is None:
        raise UsageError(
            "it cannot be told what kind of file the attached bytes are",
            remedy="use Attachment(data, media_type), such as text/plain",
        )
    guessed, _ = mimetypes.guess_type(name)
    return guessed or ("text/plain" if _is_text(data) else "application/octet-stream")


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
