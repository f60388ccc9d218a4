"""Carrying out a request in this process, to the exit code.

Nothing here is caught that ends a Python program in a way of its own: `SystemExit`, `os._exit`, a
signal. Everything else becomes an outcome, with the traceback on standard error. What few functions
need is loaded for those alone: asyncio takes longer than all the rest.
"""

import contextlib
import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.outcome import Outcome
from backburner.model.redaction import redact_text, secrets_in, without
from backburner.model.states import ErrorKind
from backburner.work.child import outcome
from backburner.work.child.finding import CannotBeFound, find
from backburner.work.child.request import Request
from backburner.work.reporting import VARIABLE
from backburner.work.result import problem_with


def carry_out(request: Request) -> int:
    """Do it, say how it ended, answer the exit code."""
    folder = AttemptFolder(os.path.dirname(os.environ[VARIABLE]))
    pid = os.getpid()
    if request.what == "tool":
        from backburner.work.child.tool import run_tool  # brings pydantic

        ending, raw_output = run_tool(request, folder)
    else:
        ending, raw_output = run_function(request, folder), None
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # full, or closed by the function
            stream.flush()
    if os.getpid() != pid:  # a copy that the function made of this process, and let come back here
        return outcome.exit_code_for(ending)
    try:
        return outcome.leave(folder, ending, raw_output)
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"backburner: how it ended could not be written: {error}\n")
        return outcome.UNSAID


def run_function(request: Request, folder: AttemptFolder) -> Ending:
    """Find the function, call it, and say what became of that."""
    try:
        function = find(request.reference)
    except CannotBeFound as reason:
        show(reason.__cause__, request)
        return Ending.failed(ErrorKind.SPAWN, hidden(str(reason), request))
    try:
        value = _call(function, request, folder)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it raises is how it ended
        show(error, request)
        return Ending.failed(ErrorKind.ERROR, hidden(described(error), request))
    return ending_of(value if isinstance(value, Outcome) else Outcome(result=value), request)


def _call(function: Callable[..., Any], request: Request, folder: AttemptFolder) -> Any:
    arguments: list[Any] = []
    if _wants_context(function):
        from backburner.work.child.context import context_of
        from backburner.work.tools.context import BlockingContext

        context = context_of(folder)
        plain = not inspect.iscoroutinefunction(function)
        arguments.append(BlockingContext(context, _carried_out) if plain else context)
    value = function(*arguments, **request.arguments)
    if not inspect.isawaitable(value):
        return value
    import asyncio

    return asyncio.run(_awaited(value))


def _carried_out(coroutine: Coroutine[Any, Any, Any]) -> Any:
    import asyncio

    return asyncio.run(coroutine)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _wants_context(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some that are written in C have none
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return bool(parameters) and parameters[0].name == "context" and parameters[0].kind in positional


def ending_of(given: Outcome, request: Request) -> Ending:
    """The ending of a call that gave this back."""
    if (reason := problem_with(given.result)) is not None:
        return Ending.failed(ErrorKind.ERROR, hidden(reason, request))
    if given.success:
        summary = hidden(str(given.summary), request) if given.summary else None
        return Ending.succeeded(exit_code=0, summary=summary, result=given.result)
    said = str(given.summary or "it says that it failed")
    return Ending.failed(ErrorKind.ERROR, hidden(said, request), result=given.result)


def described(error: BaseException) -> str:
    """Its type and text; a text that cannot be had is none."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - it is somebody else's class
        text = "its text cannot be had"
    name = type(error).__name__
    return f"{name}: {text}" if text.strip() else name


def hidden(text: str, request: Request) -> str:
    """What may be told of it, in one line: no secrets of the call, nothing that looks like one."""
    return outcome.short(_without_secrets(text, request))


def _without_secrets(text: str, request: Request) -> str:
    return without(redact_text(text), secrets_in(request.arguments))


def show(error: BaseException | None, request: Request) -> None:
    """The traceback, on standard error, without our own frames at its beginning and its secrets."""
    if error is None:
        return
    import traceback

    place = error.__traceback__
    while place is not None and _is_ours(place):
        place = place.tb_next
    with contextlib.suppress(Exception):  # a class whose text cannot be had, a closed stream
        text = "".join(traceback.format_exception(type(error), error, place))
        sys.stderr.write(_without_secrets(text, request))


def _is_ours(place: TracebackType) -> bool:
    asyncio = os.path.join(os.path.dirname(os.__file__), "asyncio", "")
    here = os.path.join(os.path.dirname(__file__), "")
    return place.tb_frame.f_code.co_filename.startswith((here, asyncio, "<frozen importlib"))
