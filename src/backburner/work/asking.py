"""The job's side of a question: asking it, and waiting for the file with its answer.

Waits for the kernel to tell that the file is there, however long and however often everything of
ours dies meanwhile. Whoever gives up says so, and the question is withdrawn.
"""

import contextlib
import os
import select
import time
from typing import Any

from backburner.model.clock import format_duration
from backburner.model.errors import BackburnerError, LimitReached, TimeIsUp
from backburner.model.home import AttemptFolder
from backburner.work.linux import Inotify, Watch
from backburner.work.reporting import append, quoted

_LONGEST_POLL_S = 86400.0
"""poll counts milliseconds in 31 bits; whoever waits longer waits again."""

_WITHOUT_INOTIFY_S = 0.5
REFUSED = ".refused"
"""The ending of the file that says why a question was not asked."""


def ask(
    folder: AttemptFolder,
    question: str,
    timeout_s: float | None,
    schema: dict[str, Any] | None = None,
) -> str:
    """The answer. TimeIsUp when nobody gives one in time; LimitReached, or the task has ended."""
    waiting = _Waiting(folder, os.urandom(8).hex())
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with contextlib.closing(waiting):
        fitting = "" if schema is None else f', "schema": {_as_json(schema)}'
        value = f'{{"id": "{waiting.id}", "question": {quoted(question)}{fitting}}}'
        append(folder.report, "ask", value)
        try:
            while (answer := waiting.answer()) is None:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                waiting.wait(left)
        except BaseException:
            with contextlib.suppress(OSError):
                append(folder.report, "withdraw", quoted(waiting.id))
            raise
        if answer is None:
            append(folder.report, "withdraw", quoted(waiting.id))
            answer = waiting.answer()
    if answer is None:
        assert timeout_s is not None
        raise TimeIsUp(
            f"nobody answered within {format_duration(timeout_s)}",
            remedy="the question was withdrawn; give it more time with --timeout",
        )
    return answer


def _as_json(schema: dict[str, Any]) -> str:
    import json  # most questions are without one, and somebody waits

    return json.dumps(schema)


def answer_to(folder: AttemptFolder, id: str) -> str | None:
    """The answer, if it is there now. LimitReached where it was not asked, or the task has ended"""
    path = f"{folder.answers}/{id}"
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        pass
    with (
        contextlib.suppress(FileNotFoundError),
        open(f"{path}{REFUSED}", encoding="utf-8") as file,
    ):
        reason = file.read().strip()
        raise LimitReached(reason, remedy="ask fewer questions at once")
    if os.path.exists(folder.result) or not os.path.isdir(folder.path):
        raise BackburnerError(
            "nobody can answer: the task has ended", remedy="ask before the script ends"
        )
    return None


class _Waiting:
    """Waits for one file."""

    def __init__(self, folder: AttemptFolder, id: str) -> None:
        self.id = id
        self._folder = folder
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder.answers, 0o700)
        self._inotify = _watching(folder)
        self._poll = select.poll()
        if self._inotify is not None:
            self._poll.register(self._inotify.fileno(), select.POLLIN)

    def answer(self) -> str | None:
        """What is there now."""
        return answer_to(self._folder, self.id)

    def wait(self, timeout_s: float | None) -> None:
        """Until something has changed, or time is up."""
        if self._inotify is None:
            longest = _WITHOUT_INOTIFY_S
            time.sleep(longest if timeout_s is None else min(timeout_s, longest))
            return
        longest = None if timeout_s is None else min(timeout_s, _LONGEST_POLL_S)
        self._poll.poll(None if longest is None else max(1, round(longest * 1000)))
        self._inotify.drain()

    def close(self) -> None:
        """Let go."""
        if self._inotify is not None:
            self._inotify.close()


def _watching(folder: AttemptFolder) -> Inotify | None:
    """None where too many watch already: then it has to be by the clock."""
    try:
        inotify = Inotify()
    except OSError:
        return None
    try:
        inotify.add(folder.answers, Watch.MOVED_TO | Watch.CREATE | Watch.DELETE_SELF)
        # Its end is told by a rename in the folder itself.
        inotify.add(folder.path, Watch.MOVED_TO | Watch.DELETE_SELF)
    except OSError:
        inotify.close()
        return None
    return inotify
