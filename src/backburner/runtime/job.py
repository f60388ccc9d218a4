"""One running shell task in the hands of the keeper: watching it to its end, and ending it.

The exit code on disk decides how a job ended; a pid never does. A task is canceled or timed out
only when nothing of its tree is left, and a job that ended by itself before we signalled anything
keeps its own ending.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.states import ErrorKind
from backburner.model.task import StopRequest, Task
from backburner.work.process.identity import open_pidfd
from backburner.work.process.tree import Tree
from backburner.work.process.wrapper import Alive, Condition, Ended, NotBegun, Vanished, inspect

_SETTLE_S = 0.1
"""What is still ending when the job has ended is not called left behind."""

_KILL_AGAIN_S = 1.0

_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
"""Somebody sent these; other signals are a program's own crash."""


class Job:
    """Knows the processes and files of one attempt, and when they end."""

    def __init__(
        self, task: Task, folder: AttemptFolder, tree: Tree, *, pid: int | None, ours: bool
    ) -> None:
        self.task = task
        self.folder = folder
        self.tree = tree
        self.stop: StopRequest | None = task.stop
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._pid = pid
        self._ours = ours
        self._pidfd = open_pidfd(pid) if pid is not None else None
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self._wrapper_ended)
        else:
            self._bell.set()

    # What others tell

    def ask_to_stop(self, stop: StopRequest) -> None:
        """Someone wants it to end, or to end sooner."""
        if self.stop is None or stop.grace_s < self.stop.grace_s:
            self.stop = stop
            self._bell.set()

    def _wrapper_ended(self) -> None:
        self._forget_pidfd()
        self._bell.set()

    def _forget_pidfd(self) -> None:
        if self._pidfd is None:
            return
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = None
        if self._ours and self._pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)

    # To the end

    async def until_over(self, say: Callable[[str], None]) -> Ending:
        """Wait for the end, by itself or by us. ``say`` takes what is worth telling meanwhile."""
        deadline = self._set_alarm()
        try:
            while True:
                await self._bell.wait()
                self._bell.clear()
                if self._pidfd is None:
                    condition = inspect(self.folder)
                    if not isinstance(condition, Alive):
                        return await self._over_by_itself(condition, say)
                    # A child of the wrapper, between its fork and its exec, holds the lock still.
                    self._loop.call_later(_SETTLE_S, self._bell.set)
                if self.stop is not None:
                    return await self._end(self.stop, Ending.canceled(), say)
                if self._runtime_left() <= 0:
                    return await self._end(
                        StopRequest(clock.now(), DEFAULT_GRACE_S), self._timed_out(), say
                    )
        finally:
            if deadline is not None:
                deadline.cancel()

    def _set_alarm(self) -> asyncio.TimerHandle | None:
        left = self._runtime_left()
        return None if left == float("inf") else self._loop.call_later(left, self._bell.set)

    def _runtime_left(self) -> float:
        place, limit = self.task.place, self.task.max_runtime_s
        if place is None or limit is None:
            return float("inf")
        return limit - (clock.boot_now() - place.started_boot) / clock.SECOND

    def _timed_out(self) -> Ending:
        assert self.task.max_runtime_s is not None
        limit = format_duration(self.task.max_runtime_s)
        return Ending.failed(ErrorKind.TIMEOUT, f"it passed its maximum run time of {limit}")

    async def _over_by_itself(self, condition: Condition, say: Callable[[str], None]) -> Ending:
        if isinstance(condition, Ended):
            return ending_of(condition)
        # The wrapper's death is not the job's end: what it started may go on.
        members = self.tree.members()
        if members:
            say(f"its shell was killed; waiting for {len(members)} of its processes to end")
        while self.tree.members():
            await self._gone(self.tree.watch(), None)
            if self.stop is not None or self._runtime_left() <= 0:
                ending = Ending.canceled() if self.stop is not None else self._timed_out()
                stop = self.stop or StopRequest(clock.now(), DEFAULT_GRACE_S)
                return await self._end(stop, ending, say)
        return ending_of(condition)

    async def _end(self, stop: StopRequest, ending: Ending, say: Callable[[str], None]) -> Ending:
        """TERM, grace, KILL, and the proof that nothing is left."""
        condition = inspect(self.folder)
        if isinstance(condition, Ended):
            return ending_of(condition)  # it ended a moment before: that is what happened
        await self.end_tree(stop.grace_s, say)
        return ending

    async def end_tree(self, grace_s: float, say: Callable[[str], None]) -> None:
        """End every process of the tree; returns when none is left."""
        began = self._loop.time()
        self.stop = self.stop or StopRequest(clock.now(), grace_s)
        if grace_s > 0:
            watched = self.tree.send(signal.SIGTERM)
            for fd in self.tree.send(signal.SIGCONT):  # a suspended process hears nothing else
                os.close(fd)
            while watched:
                left = began + min(grace_s, self.stop.grace_s) - self._loop.time()
                if not await self._gone(watched, max(0.0, left)) and left <= 0:
                    break
                watched = self.tree.watch()
        rounds = 0
        while self.tree.members():
            watched = self.tree.kill()
            await self._gone(watched, _KILL_AGAIN_S, heed_bell=False)
            rounds += 1
            if rounds == 10:  # noqa: PLR2004 - ten seconds of KILL: the kernel itself holds them
                say(f"{len(watched)} of its processes cannot be ended yet: the kernel holds them")
        if self._pidfd is not None:
            self._forget_pidfd()

    # What is left behind

    async def leftovers(self) -> int:
        """How many processes the job has left behind, now that it has ended by itself."""
        if not self.tree.is_populated():
            return 0
        await self._gone(self.tree.watch(), _SETTLE_S, heed_bell=False)
        return len(self.tree.members())

    async def until_gone(self, say: Callable[[str], None]) -> None:
        """Wait until what was left behind has ended, or end it when asked to."""
        while self.tree.members():
            if self.stop is not None:
                await self.end_tree(self.stop.grace_s, say)
            else:
                await self._gone(self.tree.watch(), None)

    async def _gone(
        self, fds: list[int], timeout_s: float | None, *, heed_bell: bool = True
    ) -> bool:
        """Wait until all these processes have ended; closes the descriptors.

        False when the time was up or the bell rang before.
        """
        left = set(fds)
        done = self._bell if heed_bell else asyncio.Event()

        def ended(fd: int) -> None:
            self._loop.remove_reader(fd)
            left.discard(fd)
            if not left:
                done.set()

        for fd in fds:
            self._loop.add_reader(fd, ended, fd)
        try:
            if left:
                async with asyncio.timeout(timeout_s):
                    await done.wait()
        except TimeoutError:
            pass
        finally:
            if heed_bell:
                self._bell.clear()
            for fd in fds:
                self._loop.remove_reader(fd)
                os.close(fd)
        return not left

    def let_go(self) -> None:
        """This keeper leaves; the job goes on without it."""
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def ending_of(condition: Condition) -> Ending:
    """How a job ended that nobody of ours ended."""
    match condition:
        case Ended(code, by_signal):
            return _exited(code, by_signal=by_signal)
        case Vanished(_, complaint) if complaint:
            return Ending.failed(ErrorKind.SPAWN, complaint.splitlines()[0])
        case Vanished():
            return Ending.failed(
                ErrorKind.KILLED, "it was ended from outside and left no exit code"
            )
        case NotBegun():
            return Ending.failed(ErrorKind.SPAWN, "its shell ended before it ran a line")
        case Alive():
            raise ValueError("a job that lives has no ending")


def _exited(code: int, *, by_signal: bool) -> Ending:
    if by_signal and code - 128 in set(signal.Signals):
        number = signal.Signals(code - 128)
        if number in _FROM_OUTSIDE:
            hint = ", perhaps by the kernel for lack of memory" if number == signal.SIGKILL else ""
            return Ending.failed(ErrorKind.KILLED, f"{number.name} from outside{hint}")
        return Ending.exited(code, f"exit code {code}: it crashed with {number.name}")
    if code == 127:  # noqa: PLR2004 - what every shell says
        return Ending.exited(code, "exit code 127: a command was not found")
    if code == 126:  # noqa: PLR2004
        return Ending.exited(code, "exit code 126: a command could not be executed")
    if code == 137:  # noqa: PLR2004
        return Ending.exited(code, "exit code 137: a process of it was killed (128 + SIGKILL)")
    return Ending.exited(code)
