"""Carrying one call out, wherever it runs, and saying how it ended in words that may be told.

Three ways to fail (E1): an error that is told with its type and text; an internal error, which is
logged with its whole chain while the caller gets a reference; and an account that nobody has
connected. Being cancelled is none of them.
"""

import asyncio
import contextlib
import logging
import re
import secrets
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from backburner.model.ending import Ending
from backburner.model.errors import (
    BackburnerError,
    ConnectionRequired,
    InternalError,
    StoreError,
    ToolError,
)
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.outcome import Image, Outcome
from backburner.model.redaction import for_log, redact_text, secrets_in, without
from backburner.model.states import ErrorKind
from backburner.model.values import value
from backburner.work.tools import prints
from backburner.work.tools.context import Context

if TYPE_CHECKING:
    from backburner.work.tools.tool import Tool

_LOG = logging.getLogger("backburner.tools")

MESSAGE_MAX_CHARS = 4_000
"""Of an error: it is in the record and in every answer about the task."""

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9.+_-]{1,60}/[A-Za-z0-9.+_-]{1,60}", re.ASCII)
_COUNTS_MAX = 50
_COUNT_MAX = 2**63 - 1

_OF_A_GROUP_MAX = 5
_NO_SUMMARY = "the tool says that it failed"


class FailureKind(Enum):
    """Who is to do something about it."""

    ERROR = "error"
    """Whoever called: the text says what went wrong."""
    INTERNAL = "internal"
    """Whoever runs the application: it is in the log."""
    CONNECTION = "connection"
    """The person who has an account there."""


@value
class Failure:
    """A call that did not come to an end of its own."""

    kind: FailureKind
    message: str
    """What may be told: nothing internal, no secrets."""
    provider: str | None = None
    """Who needs a connection."""
    reference: str | None = None
    """Where to find it in the log."""

    def ending(self) -> Ending:
        """As a task ends that failed so."""
        return Ending.failed(ErrorKind.ERROR, self.message)

    def error(self) -> BackburnerError:
        """As an exception for a caller in Python."""
        if self.kind is FailureKind.CONNECTION:
            return ConnectionRequired(self.provider or "unknown")
        if self.kind is FailureKind.INTERNAL:
            return InternalError(self.message)
        return ToolError(self.message)


def ending_of(ended: Outcome | Failure) -> Ending:
    """As a task ends that was carried out so."""
    if isinstance(ended, Failure):
        return ended.ending()
    if ended.success:
        return Ending.succeeded(summary=ended.summary, result=ended.result)
    message = redact_text(ended.summary or _NO_SUMMARY)
    return Ending.failed(ErrorKind.ERROR, _cut(message), result=ended.result)


async def carry_out(
    tool: "Tool", kwargs: dict[str, Any], context: Context | None
) -> Outcome | Failure:
    """Call a tool with what `validate` gave. Raises nothing but a cancel that came from outside."""
    try:
        value = await tool.call(kwargs, context)
        if not tool.is_async and asyncio.iscoroutine(value):
            value = await value  # a plain function that gives back a coroutine
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return failure_of(error, name=tool.name, arguments=kwargs, ours=tool.ours)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the call and no more
        return failure_of(error, name=tool.name, arguments=kwargs, ours=tool.ours)
    if value is None:
        return _NOTHING
    if isinstance(value, Outcome) and isinstance(value.summary, str):
        value = replace(value, summary=_hidden(value.summary, _secrets(kwargs)))
    ended = outcome_of(value)
    if isinstance(ended, Failure):
        return replace(ended, message=_hidden(ended.message, _secrets(kwargs)))
    if ended.summary is not None and not ended.success:
        return replace(ended, summary=redact_text(ended.summary))
    return ended


_NOTHING = Outcome()


def outcome_of(value: Any) -> Outcome | Failure:
    """What a call gave back, with a result that is JSON; a Failure where it cannot be."""
    outcome = value if isinstance(value, Outcome) else Outcome(result=value)
    try:
        return Outcome(
            success=bool(outcome.success),
            summary=_summary(outcome.summary),
            result=_as_json(outcome.result, "result"),
            raw_output=_as_json(outcome.raw_output, "raw output"),
            images=_images(outcome.images),
            usage=_usage(outcome.usage),
        )
    except Exception as error:  # noqa: BLE001 - of types that the tool brings along
        return Failure(FailureKind.ERROR, _told(error, frozenset()))


def failure_of(
    error: BaseException, *, name: str, arguments: Mapping[str, Any], ours: bool = False
) -> Failure:
    """What may be told of ``error``, which ended a call of ``name``. Internal ones are logged.

    ``ours``: the code that was called is our own, and raises BackburnerError for what it foresees.
    """
    raised = [*_single(error)]
    if any(_is_internal(each, ours=ours) for each in raised):
        return _internal(error, name, arguments)
    needed = [each for each in raised if isinstance(each, ConnectionRequired)]
    if needed and len(needed) == len(raised):
        message = str(needed[0])
        return Failure(FailureKind.CONNECTION, message, provider=needed[0].provider)
    hidden = _secrets(arguments)
    texts = [_told(each, hidden) for each in raised[:_OF_A_GROUP_MAX]]
    if len(raised) > _OF_A_GROUP_MAX:
        texts.append(f"and {len(raised) - _OF_A_GROUP_MAX} more")
    return Failure(FailureKind.ERROR, _cut("; ".join(texts)))


def _is_internal(error: BaseException, *, ours: bool) -> bool:
    if isinstance(error, InternalError | StoreError):
        return True
    return ours and not isinstance(error, BackburnerError)


def _internal(error: BaseException, name: str, arguments: Mapping[str, Any]) -> Failure:
    reference = f"ie_{secrets.token_hex(6)}"
    chain = "".join(traceback.format_exception(error))
    # Not as exc_info: texts in the chain may hold what has to be hidden.
    with prints.aside():  # without a handler it goes to standard error, which the model reads
        _LOG.error(
            "%s: internal error %s (%s)\n%s",
            name,
            reference,
            _clean(for_log(_plain(arguments))),
            _clean(redact_text(without(chain, _secrets(arguments)))),
        )
    message = f"an internal error happened in {name} (reference {reference})"
    return Failure(FailureKind.INTERNAL, message, reference=reference)


def _single(error: BaseException) -> Iterator[BaseException]:
    """What is in a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _single(inner)
    else:
        yield error


def _told(error: BaseException, hidden: frozenset[str]) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - its own code, which may be broken too
        text = ""
    return _cut(redact_text(_hidden(f"{kind}: {text}" if text else kind, hidden)))


def _hidden(text: str, hidden: frozenset[str]) -> str:
    """Without these. It is cut before it is searched, and not where it is cut in the end: that
    might leave half a secret.
    """
    return without(text[: 4 * MESSAGE_MAX_CHARS], hidden)


def _summary(text: Any) -> str | None:
    if not isinstance(text, str | None):
        raise ToolError("its summary is no text")
    return text and _cut(text)


def _cut(text: str) -> str:
    text = _clean(text)
    return text if len(text) <= MESSAGE_MAX_CHARS else text[: MESSAGE_MAX_CHARS - 1] + "…"


def _clean(text: str) -> str:
    """Without halves of surrogate pairs, as in the name of a file: no record or log takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON, so that keys inside of models and dataclasses are seen too."""
    from pydantic_core import to_jsonable_python

    plain: dict[str, Any] = {}
    for name, given in arguments.items():
        try:
            plain[name] = to_jsonable_python(given, fallback=_kind_only, bytes_mode="base64")
        except Exception:  # noqa: BLE001 - of a serializer that a type brings along
            plain[name] = _kind_only(given)
    return plain


def _secrets(arguments: Mapping[str, Any]) -> frozenset[str]:
    """Texts among them that are in no word about the call."""
    found = secrets_in(_plain(arguments))
    for given in arguments.values():
        with contextlib.suppress(Exception):  # of a type that the tool brings along
            found |= secrets_in({"secret": given.get_secret_value()})  # as pydantic hides them
    return found


def _kind_only(value: object) -> str:
    return f"<{type(value).__name__}>"


def _images(images: Any) -> tuple[Image, ...]:
    if not isinstance(images, list | tuple):
        raise ToolError("its images are no list")
    found = tuple(cast("list[Any]", images))
    if not all(_is_image(each) for each in found):
        raise ToolError("among its images is something that is none")
    return found


def _is_image(given: Any) -> bool:
    return (
        isinstance(given, Image)
        and isinstance(given.data, bytes)  # pyright: ignore[reportUnnecessaryIsInstance]
        and isinstance(given.media_type, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        and _MEDIA_TYPE.fullmatch(given.media_type) is not None
        and isinstance(given.name, str | None)  # pyright: ignore[reportUnnecessaryIsInstance]
    )


def _usage(usage: Any) -> dict[str, int] | None:
    """What of it can be counted: it is not worth a call that ended well."""
    if not isinstance(usage, Mapping):
        return None
    counts = {
        _clean(name): count
        for name, count in cast("Mapping[Any, Any]", usage).items()
        if isinstance(name, str) and type(count) is int and 0 <= count <= _COUNT_MAX
    }
    return dict(islice(counts.items(), _COUNTS_MAX)) or None


def _as_json(value: Any, what: str) -> Any:
    """There and back: what comes out is what anybody will read, and cannot be anything else."""
    if value is None or value is True or value is False:
        return value
    from pydantic_core import from_json, to_json

    try:
        text = to_json(value, inf_nan_mode="null")
        if len(text) <= RESULT_MAX_BYTES:
            return from_json(text, cache_strings=False)
    except Exception as error:  # noqa: BLE001 - of a serializer that a type brings along
        raise ToolError(f"its {what} cannot be written as JSON: {error}") from None
    limit = f"{RESULT_MAX_BYTES // 2**20} MiB"
    raise ToolError(f"its {what} is longer than {limit}: write it to a file")
