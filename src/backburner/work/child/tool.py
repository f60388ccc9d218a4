"""A tool in a process of its own: a run whose application died, or that a schedule has started."""

import asyncio
import contextlib
import io
import logging
import os
import sys
from dataclasses import replace
from typing import Any, cast

from backburner.model.ending import Ending
from backburner.model.errors import BackburnerError
from backburner.model.home import AttemptFolder
from backburner.model.limits import Settings
from backburner.model.outcome import Outcome
from backburner.model.states import ErrorKind
from backburner.work import artifacts
from backburner.work.child import outcome
from backburner.work.child.context import context_of
from backburner.work.child.finding import CannotBeFound, find
from backburner.work.child.marked import MarkedLog, MarkedStream
from backburner.work.child.request import Request
from backburner.work.reporting import append, quoted
from backburner.work.result import problem_with
from backburner.work.tools.execution import Failure, carry_out, ending_of
from backburner.work.tools.tool import MARK, Tool


def run_tool(request: Request, folder: AttemptFolder) -> tuple[Ending, Any]:
    """Find it, check the arguments, carry it out: its ending, and its raw output."""
    log = MarkedLog(cast("io.TextIOBase", sys.stdout))
    sys.stdout = MarkedStream(log, "stdout")
    sys.stderr = MarkedStream(log, "stderr")
    _log_internal_errors(folder)
    try:
        tool = _tool(request.reference)
        values = tool.validate(request.arguments)
    except (CannotBeFound, BackburnerError) as reason:
        return Ending.failed(ErrorKind.SPAWN, outcome.short(str(reason))), None
    ended = asyncio.run(carry_out(tool, values, context_of(folder)))
    if isinstance(ended, Failure):
        return ended.ending(), None
    if (reason := problem_with(ended.result)) is not None:
        return Ending.failed(ErrorKind.ERROR, reason), None
    _keep_images(folder, ended)
    ending = ending_of(ended)
    ending = replace(ending, exit_code=0) if ending.error is None else ending
    return ending, ended.raw_output


def _tool(reference: str) -> Tool:
    tool = getattr(find(reference), MARK, None)
    if not isinstance(tool, Tool):
        raise CannotBeFound(f"{reference} is no tool any more")
    return tool


def _log_internal_errors(folder: AttemptFolder) -> None:
    """Into a file of the folder: what the streams say is for the model, and these are not."""
    logger = logging.getLogger("backburner")
    logger.addHandler(_InternalLog(folder.internal, encoding="utf-8", delay=True))
    logger.propagate = False


class _InternalLog(logging.FileHandler):
    """A file that only the owner can read; made when there is something to say."""

    def _open(self) -> io.TextIOWrapper:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return open(fd, "a", encoding="utf-8")


def _keep_images(folder: AttemptFolder, ended: Outcome) -> None:
    if not ended.images:
        return
    try:
        limits = Settings.from_environment()
    except ValueError:  # of variables that are none of this task's
        limits = Settings()
    with contextlib.suppress(OSError):  # no room: the result counts
        kept, refused = artifacts.put_images(folder, ended.images, limits)
        for reason in refused:
            sys.stderr.write(f"backburner: {reason}\n")
        for path in kept:
            append(folder.report, "artifact", quoted(os.path.basename(path)))
