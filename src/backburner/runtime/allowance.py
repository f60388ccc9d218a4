"""What jobs may use: imposed before they run, told where it ended one, given back afterwards."""

import signal
from collections.abc import Iterable
from dataclasses import replace

from backburner.model.allowance import UNLIMITED, Allowance, format_size
from backburner.model.clock import format_duration
from backburner.model.ending import Ending, TaskError
from backburner.model.home import AttemptFolder
from backburner.model.states import ErrorKind, State
from backburner.model.task import Place, Task
from backburner.work.process import cgroup, memory
from backburner.work.process.allowance import impose
from backburner.work.process.condition import Ended, Settled, inspect
from backburner.work.process.wrapper import Started

_PAST_CPU_TIME = 128 + signal.SIGXCPU
_KILLED = 128 + signal.SIGKILL
_OWN_ENDS = (ErrorKind.EXIT, ErrorKind.KILLED)


class Allowances:
    """Sees to the limits of the jobs of one home."""

    def __init__(self, home_key: str, tasks_folder: str | None, *, cgroups: bool) -> None:
        self._groups = memory.MemoryGroups(home_key, tasks_folder) if cgroups else None

    def impose(
        self, task: Task, allowed: Allowance, started: Started, tasks_cgroup: str | None
    ) -> str | None:
        """Limit a wrapper that waits for the word. Answers the cgroup that limits its memory.

        OSError or ValueError where that cannot be; then the wrapper is gone.
        """
        if allowed == UNLIMITED:
            return None
        name = f"{task.id}.{task.attempt}"
        try:
            return impose(started.pid, allowed, self._groups, name, tasks_cgroup)
        except BaseException:
            started.give_up()
            raise

    def release(self, place: Place | None) -> None:
        """Nothing of the attempt runs any more. Its own cgroup is for others to remove."""
        if place is not None and place.memory_cgroup not in (None, place.cgroup):
            assert place.memory_cgroup is not None
            cgroup.remove(place.memory_cgroup)

    def sweep(self, tasks: Iterable[Task]) -> None:
        """Remove what keepers that died have left; these tasks have not ended."""
        if self._groups is not None:
            places = (task.place for task in tasks if task.place is not None)
            self._groups.sweep({place.memory_cgroup or "" for place in places})

    def close(self) -> None:
        """Let go; the limits of what runs stay."""
        if self._groups is not None:
            self._groups.close()


def witnesses(task: Task, folder: AttemptFolder) -> "tuple[Witness, ...]":
    """Who goes with a job that has limits."""
    return (Witness(task, folder),) if task.spec.get("allowance") else ()


class Witness:
    """The attendant who knows whether it was a limit that ended a job."""

    def __init__(self, task: Task, folder: AttemptFolder) -> None:
        self._task = task
        self._folder = folder
        self._allowed = Allowance.of(task.spec)

    def look(self) -> None:
        """Nothing to see before the end."""

    async def attend(self) -> None:
        """Nothing to do before the end."""

    async def conclude(self, ending: Ending) -> Ending:
        """Say which limit it was."""
        found = inspect(self._folder)
        if isinstance(found, Settled):
            return ending  # it was said before, and the numbers may be gone
        code = found.code if isinstance(found, Ended) else None
        if ending.state is State.SUCCEEDED and self._past_memory():
            said = f"a process of it was killed: {self._memory_limit()}"
            return replace(ending, summary=ending.summary or said)
        if ending.error is None or ending.error.kind not in _OWN_ENDS:
            return ending
        if self._past_memory():
            return Ending.failed(ErrorKind.KILLED, self._memory_limit())
        if self._past_cpu_time(code):
            return Ending.failed(ErrorKind.KILLED, self._cpu_limit())
        return self._with_hint(ending)

    def _past_memory(self) -> bool:
        place = self._task.place
        if self._allowed.memory is None or place is None or place.memory_cgroup is None:
            return False
        return memory.was_exceeded(place.memory_cgroup)

    def _past_cpu_time(self, code: int | None) -> bool:
        limit, place = self._allowed.cpu_seconds, self._task.place
        if limit is None:
            return False
        if code == _PAST_CPU_TIME:
            return True
        # What does not heed SIGXCPU is killed; so is what somebody kills.
        used = memory.cpu_seconds(place.cgroup) if place is not None and place.cgroup else 0
        return code == _KILLED and used >= limit

    def _memory_limit(self) -> str:
        assert self._allowed.memory is not None
        return f"it used more than its memory limit of {format_size(self._allowed.memory)}"

    def _cpu_limit(self) -> str:
        assert self._allowed.cpu_seconds is not None
        limit = _seconds(self._allowed.cpu_seconds)
        return f"a process of it used more than the CPU time limit of {limit}"

    def _with_hint(self, ending: Ending) -> Ending:
        """Where nobody counts, the limit may have been the reason, and may not."""
        place = self._task.place
        if self._allowed.memory is None or (place is not None and place.memory_cgroup):
            return ending
        error = ending.error
        assert error is not None
        limit = format_size(self._allowed.memory)
        said = f"{error.message} (each of its processes was limited to {limit} of memory)"
        return replace(ending, error=TaskError(error.kind, said))


def limits_in_force(task: Task) -> list[str]:
    """What a task may use and how it is held to that, for people."""
    allowed = Allowance.of(task.spec)
    said: list[str] = []
    if allowed.nice is not None:
        said.append(f"niceness {allowed.nice}")
    if allowed.memory is not None:
        said.append(f"memory {format_size(allowed.memory)}{_how(task.place)}")
    if allowed.cpu_seconds is not None:
        said.append(f"CPU time {_seconds(allowed.cpu_seconds)} for each process")
    return said


def _how(place: Place | None) -> str:
    if place is None:
        return ""
    if place.memory_cgroup is None:
        return " for each process (RLIMIT_AS)"
    version = "v2" if place.memory_cgroup == place.cgroup else "v1"
    return f" for all together (cgroup {version})"


def _seconds(count: int) -> str:
    return format_duration(count) if count >= 10 else f"{count}s"  # noqa: PLR2004 - no tenths here
