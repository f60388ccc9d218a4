"""The context of a call in a process of its own: it speaks through the job's report and streams."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from backburner.model.clock import format_duration
from backburner.model.errors import TimeIsUp
from backburner.model.home import AttemptFolder
from backburner.model.questions import question_text
from backburner.work.asking import answer_to
from backburner.work.linux import Inotify, Watch
from backburner.work.reporting import append, quoted
from backburner.work.tools.context import Stream

_WITHOUT_INOTIFY_S = 0.5


class ReportSink:
    """See `work.tools.context.Sink` for what each method promises."""

    def __init__(self, folder: AttemptFolder) -> None:
        self._folder = folder
        self._received = 0

    def status(self, text: str) -> None:
        """What it is doing now."""
        self._report("status", quoted(str(text)))

    def output(self, stream: Stream, text: str) -> None:
        """A piece of its output."""
        target = sys.stderr if stream == "stderr" else sys.stdout
        target.write(str(text))
        target.flush()

    def progress(
        self, current: float, total: float | None, unit: str | None, label: str | None
    ) -> None:
        """How far it is."""
        said = {"current": current, "total": total, "unit": unit, "label": label}
        self._report("progress", json.dumps(said, default=str))

    async def ask(
        self, question: str, schema: Mapping[str, Any] | None, timeout: float | None
    ) -> Any:
        """Ask, and wait for the file with the answer."""
        text = question_text(question)
        number = os.urandom(8).hex()
        said: dict[str, Any] = {"id": number, "question": text}
        if schema is not None:
            said["schema"] = dict(schema)
        async with _watching(self._folder.answers, self._folder.path) as changes:
            append(self._folder.report, "ask", json.dumps(said))
            try:
                async with asyncio.timeout(timeout):
                    while (answer := answer_to(self._folder, number)) is None:
                        await changes.next()
            except BaseException as error:
                self._report("withdraw", quoted(number))
                if isinstance(error, TimeoutError) and timeout is not None:
                    raise TimeIsUp(f"nobody answered within {format_duration(timeout)}") from None
                raise
        return answer if schema is None else _value(answer, schema)

    async def receive(self, timeout: float | None) -> str:
        """The message with the next number."""
        async with _watching(self._folder.messages) as changes:
            try:
                async with asyncio.timeout(timeout):
                    while (text := self._next_message()) is None:
                        await changes.next()
            except TimeoutError:
                if timeout is None:
                    raise
                limit = format_duration(timeout)
                raise TimeIsUp(f"no message came within {limit}") from None
        return text

    def _next_message(self) -> str | None:
        names = os.listdir(self._folder.messages)
        numbers = [int(name) for name in names if name.isascii() and name.isdigit()]
        waiting = [number for number in numbers if number > self._received]
        if not waiting:
            return None
        number = min(waiting)
        with open(f"{self._folder.messages}/{number}", encoding="utf-8", newline="") as file:
            text = file.read()
        self._received = number
        return text

    async def tell(self, text: str) -> None:
        """Tell the session something while it goes on."""
        append(self._folder.report, "tell", quoted(str(text)))

    def _report(self, key: str, value: str) -> None:
        with contextlib.suppress(OSError):  # a full disk: the work goes on
            append(self._folder.report, key, value)


def _value(answer: str, schema: Mapping[str, Any]) -> Any:
    """What the answer means; it was checked when it was given."""
    from backburner.work.fitting import value_of  # slow to load, seldom needed

    return value_of(answer, schema)


class _Changes:
    """Tells that something may have changed."""

    def __init__(self, inotify: Inotify | None) -> None:
        self._inotify = inotify
        self._bell = asyncio.Event()

    def ring(self) -> None:
        """Something has."""
        if self._inotify is not None:
            self._inotify.drain()
        self._bell.set()

    async def next(self) -> None:
        """Wait for it."""
        if self._inotify is None:  # too many watch already: by the clock
            await asyncio.sleep(_WITHOUT_INOTIFY_S)
            return
        await self._bell.wait()
        self._bell.clear()


@contextlib.asynccontextmanager
async def _watching(folder: str, parent: str | None = None) -> AsyncGenerator[_Changes]:
    """Changes in the folder, and of what gets its name in ``parent``, from now on."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        try:
            inotify = Inotify()
            stack.callback(inotify.close)
            inotify.add(folder, Watch.MOVED_TO | Watch.CREATE | Watch.DELETE_SELF)
            if parent is not None:
                inotify.add(parent, Watch.MOVED_TO | Watch.DELETE_SELF)
        except OSError:
            yield _Changes(None)
            return
        changes = _Changes(inotify)
        loop.add_reader(inotify.fileno(), changes.ring)
        stack.callback(loop.remove_reader, inotify.fileno())
        yield changes
