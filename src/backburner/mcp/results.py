"""What a call of a tool gives, as MCP says it: content for models, structured for programs."""

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from backburner.model.ending import Ending, spelling
from backburner.model.errors import BackburnerError
from backburner.model.outcome import Image, Outcome
from backburner.model.redaction import redact_text
from backburner.model.sayable import sayable
from backburner.model.signals import Signal
from backburner.model.states import Kind
from backburner.model.telling import end_text

if TYPE_CHECKING:
    from backburner.app import Task
    from backburner.runtime.runs.tools import Invocation
    from backburner.tools.seen import Answer

_ERROR = "backburner/jsonrpc-error"
"""In the result of a tool: its call failed as a JSON-RPC error does."""

_ANSWER = "backburner/mcp-result"
"""In the raw output of a call: what the server answered to which it was passed on."""

_SUMMARY_CHARS = 200
_IMAGES_MOST = 20

_OUTPUT_CHARS = 4_000
"""Of what a finished job has printed; `background_output` reads on."""

_INTERNAL = -32603


def protocol_error(message: str, *, code: int = _INTERNAL, data: Any = None) -> Outcome:
    """What a tool returns whose call is to fail as a JSON-RPC error, and not as a tool's own.

    A model sees and corrects the one kind; the other is for the client.
    """
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return Outcome(success=False, summary=message, result={_ERROR: error})


def error_in(result: Any) -> dict[str, Any] | None:
    """The JSON-RPC error that a tool has returned; None where it has returned anything else."""
    given = cast("Mapping[str, Any]", result).get(_ERROR) if isinstance(result, Mapping) else None
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


def passed_on(answer: Mapping[str, Any]) -> Outcome:
    """What another server has answered: all of it as raw output, and its text or data as such."""
    content: Any = answer.get("content")
    given = cast("list[Any]", content) if isinstance(content, list) else []
    blocks = [cast("Mapping[str, Any]", each) for each in given if isinstance(each, Mapping)]
    text = "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")
    good = not answer.get("isError") and answer.get("resultType", "complete") == "complete"
    data = answer.get("structuredContent")
    images = [each for block in blocks[:_IMAGES_MOST] if (each := _image(block)) is not None]
    return Outcome(
        success=good,
        summary=(text[:_SUMMARY_CHARS] if good else text) or None,
        result=text if data is None else data,
        raw_output={_ANSWER: answer},
        images=images,
    )


def refused(error: BackburnerError) -> dict[str, Any]:
    """A call that was not made: the model may correct it."""
    text = redact_text(str(error))
    told = {"error": {"code": error.code, "message": text}}
    return _result([_text(text)], told, is_error=True)


def failed(text: str) -> dict[str, Any]:
    """A failure of ours, in words for a model."""
    return _result([_text(text)], is_error=True)


def parked(called: "Invocation") -> dict[str, Any]:
    """That a call goes on, as one is told who cannot have a task (D2)."""
    return _result([_text(called.message or "")], called.document())


def of_answer(answer: "Answer") -> dict[str, Any]:
    """The answer of one of our own tools."""
    return _result([_text(answer.text)], answer.data or None, is_error=answer.is_error)


def of_call(called: "Invocation", told: Sequence[Signal]) -> dict[str, Any]:
    """A call that ended within its budget, or was parked."""
    beside = [_text("\n".join(f"[{each.kind}] {each.text}" for each in told))] if told else []
    if called.parked:
        told_so = parked(called)
        return {**told_so, "content": [*told_so["content"], *beside]}
    if called.connection is not None:
        needed = {"connection_required": called.connection}
        return _result([_text(called.error or ""), *beside], needed, is_error=True)
    said = _said(called.result, called.summary)
    if not called.success:
        said = "\n".join(part for part in (called.error, said) if part)
    images: list[dict[str, Any]] = [
        {
            "type": "image",
            "data": base64.b64encode(image.data).decode(),
            "mimeType": image.media_type,
        }
        for image in called.images
    ]
    text = [_text(said)] if said or not images else []
    return _result([*text, *images, *beside], called.result, is_error=not called.success)


async def of_ended(task: "Task") -> dict[str, Any]:
    """A task that has ended, as the call would have answered that has become it."""
    record = task.record
    if record.kind is Kind.TOOL and (answer := await asyncio.to_thread(_answer_of, task)):
        return answer
    is_error = spelling(record.state, record.error).mcp_is_error
    said = _said(record.result, record.summary)
    if record.kind is Kind.SHELL:
        ending = Ending(record.state, record.error, record.exit_code, record.summary)
        took = record.elapsed_us(record.finished_at or 0)
        chunk = await task.output(max_chars=_OUTPUT_CHARS)
        printed = (text.rstrip() for text in (chunk.text, chunk.stderr_text) if text)
        said = "\n".join(
            part
            for part in (end_text(record.title, record.id, ending, took), *printed, said)
            if part
        )
    elif record.error is not None:
        said = "\n".join(part for part in (record.error.message, said) if part)
    return _result([_text(said)], record.result, is_error=is_error)


def _answer_of(task: "Task") -> dict[str, Any] | None:
    """What the server answered to which a call was passed on; None for any other call."""
    path = task.document()["paths"]["result"]
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            raw: Any = json.load(file).get("raw_output")
    except (OSError, ValueError, AttributeError):
        return None  # there was no room for it: what the record has is told
    answer = cast("dict[str, Any]", raw).get(_ANSWER) if isinstance(raw, dict) else None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None


def _image(block: Mapping[str, Any]) -> Image | None:
    if block.get("type") != "image":
        return None
    try:
        data = base64.b64decode(str(block.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Image(data, str(block.get("mimeType") or "image/png"))


def _result(
    content: list[dict[str, Any]], structured: Any = None, *, is_error: bool = False
) -> dict[str, Any]:
    # An object or nothing: before 2026-07-28 no other structured content was allowed.
    more: dict[str, Any] = {}
    if isinstance(structured, dict):
        more["structuredContent"] = structured
    return sayable({"content": content, **more, "isError": is_error})


def _said(result: Any, summary: str | None) -> str:
    if result is None or error_in(result) is not None:
        return summary or ""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
