"""What a task has written: as text by cursor, as bytes by range, and the files it has added."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Query
from fastapi import Path as InPath
from starlette.responses import Response, StreamingResponse

from backburner.model.errors import NotFound
from backburner.model.limits import OUTPUT_MAX_CHARS
from backburner.runtime.output import artifacts as artifacts_of_task
from backburner.runtime.output import read_task_bytes, read_task_output
from backburner.serve.access import SLASH, Looks, TaskId
from backburner.serve.models.task import ArtifactList, OutputChunk
from backburner.serve.problems import Refused
from backburner.work.log.read import Streams

router = APIRouter(prefix="/v1", tags=["output"])

_MOST_CHARS = 4 * 1024 * 1024
"""A log is bounded, and all of it fits unless its bounds were raised."""
_PIECE = 256 * 1024
_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))", re.ASCII)

_STREAMS: dict[str, Streams] = {"both": "both", "stdout": "out", "stderr": "err"}

_BINARY: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "All of it.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
}
_PARTS: dict[int | str, dict[str, Any]] = {
    **_BINARY,
    206: {
        "description": "A part of it, as Content-Range says: up to what the log has let go of.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
}


@router.get("/tasks/{id}/output", response_model=OutputChunk)
async def output(
    *,
    who: Looks,
    id: TaskId,
    since: Annotated[
        str | None, Query(max_length=100, description="The cursor of the read before.")
    ] = None,
    max: Annotated[
        int, Query(ge=0, le=_MOST_CHARS, description="Characters; more comes as head and tail.")
    ] = OUTPUT_MAX_CHARS,
    grep: Annotated[
        str | None, Query(max_length=1000, description="An RE2 pattern: only lines that match.")
    ] = None,
    last: Annotated[
        int | None, Query(ge=0, le=1_000_000, description="Only the last so many lines.")
    ] = None,
    raw: Annotated[bool, Query(description="With colour codes and redrawn lines.")] = False,
    stream: Annotated[Literal["both", "stdout", "stderr"], Query()] = "both",
) -> dict[str, Any]:
    """What it has written since a cursor, as text: only what is new, with noise folded."""
    task = await who.task(id)
    await who.service.backburner.tasks.fetch_output(task.record)
    chunk = await asyncio.to_thread(
        read_task_output,
        who.service.backburner.home,
        task.record,
        since=since,
        max_chars=max,
        grep=grep,
        last_lines=last,
        raw=raw,
        streams=_STREAMS[stream],
    )
    return {
        "text": chunk.text,
        "stderr": chunk.stderr_text,
        "cursor": chunk.cursor,
        "dropped": chunk.dropped,
        "total": chunk.total,
        "complete": chunk.complete,
    }


@router.get("/tasks/{id}/log", response_class=Response, responses=_PARTS)
async def log(
    who: Looks,
    id: TaskId,
    stream: Annotated[Literal["stdout", "stderr"], Query()] = "stdout",
    range: Annotated[
        str | None, Header(max_length=100, description="`bytes=FIRST-LAST`, one range.")
    ] = None,
) -> Response:
    """The bytes themselves. Positions are those of everything that was ever written.

    Without a range, what is kept, with a line where something was let go of. With one, the first
    bytes of it that are kept, as far as they follow each other.
    """
    record = (await who.task(id)).record
    home = who.service.backburner.home
    await who.service.backburner.tasks.fetch_output(record)
    found = await asyncio.to_thread(read_task_bytes, home, record, stderr=stream == "stderr")
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{record.id}.{stream}.log"',
    }
    first, last = _asked(range, found.total)
    if first is None:
        return _download(found.whole(), headers)
    at, data = found.part(first, last)
    if not data:
        raise Refused(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "range",
            "nothing of that range is kept",
            remedy="ask for another one; without Range all that is kept is answered",
            headers={"Content-Range": f"bytes */{found.total}"},
        )
    headers["Content-Range"] = f"bytes {at}-{at + len(data) - 1}/{found.total}"
    return _download(data, headers, HTTPStatus.PARTIAL_CONTENT)


def _asked(text: str | None, total: int) -> tuple[int | None, int]:
    """The first and last position of a range. What is none is ignored, as HTTP has it."""
    match = _RANGE.fullmatch(text or "")
    if match is None:
        return None, 0
    first, last, suffix = match.groups()
    if suffix is not None:
        return max(0, total - int(suffix)), total - 1
    end = min(int(last), total - 1) if last else total - 1
    if last and int(last) < int(first):
        return None, 0
    return int(first), end


def _download(data: bytes, headers: dict[str, str], status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(data, status, headers=headers, media_type="application/octet-stream")


@router.get("/tasks/{id}/artifacts", response_model=ArtifactList)
async def artifacts(who: Looks, id: TaskId) -> dict[str, Any]:
    """The files that it has added."""
    record = (await who.task(id)).record
    found = await asyncio.to_thread(artifacts_of_task, who.service.backburner.home, record)
    return {
        "items": [{"name": each.name, "bytes": each.bytes, "path": each.path} for each in found]
    }


@router.get("/tasks/{id}/artifacts/{name}", response_class=Response, responses=_BINARY)
async def artifact(
    who: Looks,
    id: TaskId,
    name: Annotated[str, InPath(min_length=1, max_length=255, description="Of the file.")],
) -> Response:
    """One of these files."""
    record = (await who.task(id)).record
    if SLASH in name:
        raise NotFound("no such artifact")
    fd = await who.service.backburner.tasks.open_artifact(record, name)
    size = os.fstat(fd).st_size
    return StreamingResponse(
        _pieces(fd, size),
        headers={
            "Content-Length": str(size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        },
        media_type="application/octet-stream",
    )


async def _pieces(fd: int, size: int) -> AsyncIterator[bytes]:
    """The bytes that it had when it was opened; one that shrinks cuts the answer short."""
    try:
        while size > 0:
            piece = await asyncio.to_thread(os.read, fd, min(_PIECE, size))
            if not piece:
                raise OSError("the file became shorter while it was read")
            size -= len(piece)
            yield piece
    finally:
        os.close(fd)
