"""A task in a few words, for people: colours of states, ages, how it ended, how far it is."""

from backburner.model.clock import SECOND, Instant, format_duration
from backburner.model.ending import Ending
from backburner.model.states import ErrorKind, State
from backburner.model.task import Progress, Task
from backburner.model.telling import end_text, how_it_ended, waiting
from backburner.model.watching import ready_when

STATE_COLOURS = {
    State.QUEUED: "dim",
    State.RUNNING: "cyan",
    State.INPUT_REQUIRED: "magenta",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELED: "yellow",
}

_FAILURES = {
    ErrorKind.TIMEOUT: "timed out",
    ErrorKind.KILLED: "killed",
    ErrorKind.ORPHANED: "died",
    ErrorKind.SPAWN: "could not start",
    ErrorKind.ERROR: "error",
}


def since(instant: Instant, now: Instant) -> str:
    """How long ago; never negative, also when the clock was set back."""
    return format_duration(max(0, now - instant) / SECOND)


def took(task: Task, now: Instant) -> str:
    """How long it has run or ran; nothing where it never did."""
    return format_duration(task.elapsed_us(now) / SECOND) if task.started_at is not None else ""


def outcome(task: Task, *, bar: bool = False) -> str:
    """How it ended, or how far it is: two or three words for a table, which may have a bar too."""
    if not task.state.terminal:
        return _how_far(task, bar=bar)
    words = _ended(task)
    return f"{words}, {task.leftovers} left behind" if task.leftovers else words


def _ended(task: Task) -> str:
    if task.state is State.CANCELED:
        return "stopped"
    if task.exit_code is not None:
        return f"exit {task.exit_code}"
    return _FAILURES[task.error.kind] if task.error is not None else "done"


def _how_far(task: Task, *, bar: bool) -> str:
    if task.stop is not None:
        return "stopping"
    if task.wait is not None:
        return waiting(task.wait)
    if task.question is not None:
        return f"asks: {' '.join(task.question.text.split())}"
    said = task.detail or ""
    if task.progress is not None:
        said = counted(task.progress) if bar else progress(task.progress)
    return ", ".join(words for words in (readiness(task), said) if words)


def tries(task: Task) -> str:
    """``2``, ``2, 3 more where it fails``: which attempt this is; nothing for an only one."""
    if task.retries_left and not task.state.terminal:
        return f"{task.attempt}, {task.retries_left} more where it fails"
    return str(task.attempt) if task.attempt > 1 else ""


def readiness(task: Task) -> str:
    """``starting`` and then ``ready``, of a running task that is to become ready."""
    if task.state is State.QUEUED or ready_when(task) is None:
        return ""
    return "starting" if task.ready_at is None else "ready"


def progress(given: Progress) -> str:
    """``40 % (4/10 files) unpacking``."""
    unit = f" {given.unit}" if given.unit else ""
    words = f"{given.current:g}{unit}"
    if given.total:
        words = f"{given.current / given.total:.0%} ({given.current:g}/{given.total:g}{unit})"
    return f"{words} {given.label}" if given.label else words


def counted(given: Progress) -> str:
    """``4/10 files unpacking``: what a bar leaves to be said."""
    of = f"/{given.total:g}" if given.total else ""
    words = f"{given.current:g}{of} {given.unit}" if given.unit else f"{given.current:g}{of}"
    return f"{words} {given.label}" if given.label else words


def ending(task: Task) -> str:
    """``failed: exit code 2``: what follows the name of an ended task."""
    return how_it_ended(Ending(task.state, task.error, task.exit_code, task.summary))


def sentence(task: Task, now: Instant) -> str:
    """The end of a task, or where it is, as a whole sentence."""
    if not task.state.terminal:
        reason = "" if task.wait is None else waiting(task.wait, now)
        state = task.state.value.replace("_", " ")
        how = ", ".join(filter(None, (state, readiness(task), reason)))
        return f"{task.title} ({task.id}) is {how}"
    ended = Ending(task.state, task.error, task.exit_code, task.summary)
    return end_text(task.title, task.id, ended, task.elapsed_us(now))


def processes(count: int) -> str:
    """``1 process``, ``3 processes``."""
    return f"{count} process" if count == 1 else f"{count} processes"
