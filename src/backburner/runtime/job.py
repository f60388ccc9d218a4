"""One running process task in the hands of the keeper: watching it to its end, and ending it.

The exit code on disk decides how a job ended; a pid never does. A task is canceled or timed out
only when nothing of its tree is left, and a job that ended by itself before we signalled anything
keeps its own ending.
"""

import asyncio
import contextlib
import os
import signal
from typing import Protocol

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.states import ErrorKind
from backburner.model.task import EndedFor, StopRequest, Task
from backburner.work.process.condition import (
    Alive,
    Condition,
    Ended,
    Lost,
    NotBegun,
    Settled,
    Vanished,
    inspect,
)
from backburner.work.process.identity import open_pidfd
from backburner.work.process.tree import Tree
from backburner.work.process.wrapper import is_wrapper

_SETTLE_S = 0.1
"""What is still ending when the job has ended is not called left behind."""

_KILL_AGAIN_S = 1.0
_KILLS_BEFORE_WORD = 10
"""After so many, the kernel itself holds what is left, and that is worth telling."""

_LONGEST_NAP_S = 60.0
_LOOK_AGAIN_S = 0.01

_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
"""Somebody sent these; other signals are a program's own crash."""


class Chronicle(Protocol):
    """Where a job puts down what happens to it."""

    def say(self, text: str) -> None:
        """Something worth telling."""
        ...

    async def begin_ending(self, reason: EndedFor) -> None:
        """The next thing is a signal to its processes: on disk when this returns, if it can be."""
        ...


class Job:
    """Knows the processes and files of one attempt, and when they end."""

    def __init__(
        self,
        task: Task,
        folder: AttemptFolder,
        tree: Tree,
        chronicle: Chronicle,
        *,
        pid: int | None,
        ours: bool,
    ) -> None:
        self._chronicle = chronicle
        self.task = task
        self.folder = folder
        self.tree = tree
        self.stop: StopRequest | None = task.stop
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._pid = pid
        self.ours = ours
        """This keeper has started it."""
        # Its command begins now, after the claim was on disk, which may have taken seconds.
        self._began = clock.boot_now() if ours or task.place is None else task.place.started_boot
        self._pidfd = open_pidfd(pid) if pid is not None else None
        if self._pidfd is not None and not ours and not isinstance(inspect(folder), Alive):
            os.close(self._pidfd)  # it ended in between: that number may be somebody else's now
            self._pidfd = None
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self._wrapper_ended)
        if self._pidfd is None or self.stop is not None:
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
        if self.ours and self._pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)

    # To the end

    async def until_over(self) -> Ending:
        """Wait for the end, by itself or by us."""
        if self.task.ended_for is not None:
            return await self._carry_through(self.task.ended_for)  # a worker before us began it
        while True:
            if self._pidfd is None:
                condition = inspect(self.folder)
                if not isinstance(condition, Alive):
                    return await self._over_by_itself(condition)
            if reason := self._reason_to_end():
                return await self._end(reason)
            # Without a descriptor, a child of the wrapper between its fork and its exec holds the
            # lock for a moment more.
            await self._ring(self._look_again_s() if self._pidfd is not None else _SETTLE_S)

    def _reason_to_end(self) -> EndedFor | None:
        if self.stop is not None:
            return EndedFor.STOP
        return EndedFor.TIMEOUT if self._runtime_left() <= 0 else None

    async def _ring(self, timeout_s: float) -> None:
        """Wait for the bell, or for the time to look again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._bell.wait()
        self._bell.clear()

    def _look_again_s(self) -> float:
        # In steps: the loop's clock stands still while the machine sleeps, boot time does not.
        return min(max(0.0, self._runtime_left()) + 0.001, _LONGEST_NAP_S)

    def _runtime_left(self) -> float:
        limit = self.task.max_runtime_s
        if limit is None:
            return float("inf")
        return limit - (clock.boot_now() - self._began) / clock.SECOND

    def _timed_out(self) -> Ending:
        assert self.task.max_runtime_s is not None
        limit = format_duration(self.task.max_runtime_s)
        return Ending.failed(ErrorKind.TIMEOUT, f"it passed its maximum run time of {limit}")

    async def _over_by_itself(self, condition: Condition) -> Ending:
        if isinstance(condition, Ended | Settled):
            return ending_of(condition)
        # The wrapper's death is not the job's end: what it started may go on.
        members = self.tree.members()
        if members:
            count = len(members)
            self._chronicle.say(f"its shell was killed; waiting for {count} of its processes")
        while self.tree.members():
            if reason := self._reason_to_end():
                return await self._end(reason)
            await self._gone(self.tree.watch(), self._look_again_s())
        return ending_of(condition)

    async def _end(self, reason: EndedFor) -> Ending:
        """End it, unless it ends by itself before the first signal is sent."""
        condition = inspect(self.folder)
        if not isinstance(condition, Ended | Settled):
            await self._chronicle.begin_ending(reason)
            condition = inspect(self.folder)
        if isinstance(condition, Ended | Settled):
            return ending_of(condition)
        return await self._carry_through(reason)

    async def _carry_through(self, reason: EndedFor) -> Ending:
        await self.end_tree(self.stop.grace_s if self.stop else DEFAULT_GRACE_S)
        return Ending.canceled() if reason is EndedFor.STOP else self._timed_out()

    async def end_tree(self, grace_s: float) -> None:
        """End every process of the tree; returns when none is left."""
        began = self._loop.time()
        self.stop = self.stop or StopRequest(clock.now(), grace_s)
        if grace_s > 0:
            await self._until_begun(began, grace_s)
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
            if rounds == _KILLS_BEFORE_WORD:
                self._chronicle.say(
                    f"{len(watched)} of its processes cannot be ended yet: the kernel holds them"
                )
        if self._pidfd is not None:
            self._forget_pidfd()

    async def _until_begun(self, began: float, grace_s: float) -> None:
        """The wrapper outlives TERM: a command that it has yet to start would not hear of it.

        A busy machine may take seconds for that. While there is nothing but the wrapper there is
        also nobody else to ask, so it is waited for as long as the grace lasts.
        """
        pause = _LOOK_AGAIN_S
        while self.stop is not None and self._loop.time() - began < min(grace_s, self.stop.grace_s):
            members = self.tree.members()
            if not members or not all(is_wrapper(pid) for pid in members):
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _SETTLE_S)

    # What is left behind

    async def leftovers(self) -> int:
        """How many processes the job has left behind, now that it has ended by itself."""
        if not self.tree.is_populated():
            return 0
        await self._gone(self.tree.watch(), _SETTLE_S, heed_bell=False)
        return len(self.tree.members())

    async def until_gone(self) -> None:
        """Wait until what was left behind has ended, or end it when asked to."""
        while self.tree.members():
            if self.stop is not None:
                await self.end_tree(self.stop.grace_s)
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
            else:  # no descriptor could be had: look again, and let others have their turn
                await asyncio.sleep(_LOOK_AGAIN_S)
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
        self._forget_pidfd()


def ending_of(condition: Condition) -> Ending:
    """How a job ended that nobody of ours ended."""
    match condition:
        case Ended(code, by_signal):
            return _exited(code, by_signal=by_signal)
        case Settled(ending):
            return ending
        case Vanished(_, complaint) if complaint:
            return Ending.failed(ErrorKind.SPAWN, complaint.splitlines()[0])
        case Vanished():
            return Ending.failed(
                ErrorKind.KILLED, "it was ended from outside and left no exit code"
            )
        case Lost():
            return Ending.failed(
                ErrorKind.KILLED, "its files were deleted or replaced: how it ended is not known"
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
