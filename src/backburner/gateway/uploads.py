"""Files that people send: kept in the folder of their session, where its agent finds them.

Names come from outside and are never used as they are. The folder is bounded: the oldest go first.
"""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import Sequence

from backburner.gateway.platform import Later, Refused, Upload
from backburner.model.errors import LimitReached, ToolError
from backburner.model.limits import ATTACHMENT_MAX_BYTES, ATTACHMENTS_MAX
from backburner.work.tools.own_folder import OwnFolder

FOLDER = "uploads"
KEPT_MAX = 100
"""Files of one session."""

_FETCH_LIMIT_S = 120.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_MAX = 80


async def kept(uploads: Sequence[Upload], folder: str) -> list[str]:
    """Fetch them and put them there: their paths. LimitReached, ToolError."""
    if len(uploads) > ATTACHMENTS_MAX:
        raise LimitReached(
            f"{len(uploads)} files are more than {ATTACHMENTS_MAX}, the limit of one message",
            remedy="send fewer at once",
        )
    paths: list[str] = []
    room = ATTACHMENT_MAX_BYTES
    for upload in uploads:
        if (upload.size or 0) > room:
            raise _too_large()
        data = await _fetched(upload, room)
        room -= len(data)
        paths.append(await asyncio.to_thread(_put, folder, upload.name, data))
    return paths


async def _fetched(upload: Upload, room: int) -> bytes:
    try:
        async with asyncio.timeout(_FETCH_LIMIT_S):
            data = await upload.fetch(room)
    except Refused:
        raise _too_large() from None
    except (Later, TimeoutError):
        raise ToolError("a file could not be fetched", remedy="send it again") from None
    if len(data) > room:
        raise _too_large()
    return data


def _too_large() -> LimitReached:
    return LimitReached(
        f"the files are larger than {ATTACHMENT_MAX_BYTES // 2**20} MiB, the limit of one message",
        remedy="send smaller ones",
    )


def _put(folder: str, name: str, data: bytes) -> str:
    if isinstance(folder, OwnFolder):
        folder.make()
    place = f"{folder}/{FOLDER}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    inside = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        chosen = f"{secrets.token_hex(4)}-{_safe(name)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(chosen, flags, 0o600, dir_fd=inside), "wb") as file:
            file.write(data)
        _drop_oldest(inside)
    finally:
        os.close(inside)
    return f"{place}/{chosen}"


def _safe(name: str) -> str:
    base = _UNSAFE.sub("_", os.path.basename(name)).lstrip(".") or "file"
    stem, dot, ending = base.rpartition(".")
    return base if len(base) <= _NAME_MAX else f"{stem[: _NAME_MAX - 10]}{dot}{ending[:9]}"


def _drop_oldest(inside: int) -> None:
    found: list[tuple[float, str]] = []
    for name in os.listdir(inside):
        with contextlib.suppress(OSError):
            found.append((os.stat(name, dir_fd=inside, follow_symlinks=False).st_mtime, name))
    for _, name in sorted(found)[: max(0, len(found) - KEPT_MAX)]:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=inside)
