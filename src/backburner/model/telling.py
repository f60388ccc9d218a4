"""The sentence that tells of an ending (A5): finished, failed, stopped, timed out or died."""

from backburner.model.clock import format_duration
from backburner.model.ending import Ending
from backburner.model.states import ErrorKind, State


def how_it_ended(ending: Ending) -> str:
    """``finished``, ``failed: exit code 2``, ``was stopped`` …: what follows the task's name."""
    if ending.state is State.SUCCEEDED:
        return "finished"
    if ending.state is State.CANCELED:
        return "was stopped"
    error = ending.error
    assert error is not None
    match error.kind:
        case ErrorKind.EXIT | ErrorKind.ERROR:
            return f"failed: {error.message}"
        case ErrorKind.TIMEOUT:
            return f"timed out: {error.message}"
        case ErrorKind.KILLED:
            return f"was killed: {error.message}"
        case ErrorKind.ORPHANED:
            return f"died: {error.message}"
        case ErrorKind.SPAWN:
            return f"failed to start: {error.message}"


def end_text(title: str, task_id: str, ending: Ending, elapsed_us: int) -> str:
    """The whole sentence: ``tests (bg_…) finished after 12s``."""
    took = format_duration(elapsed_us / 1e6)
    sentence = f"{title} ({task_id}) {how_it_ended(ending)}"
    never_ran = ending.error is not None and ending.error.kind is ErrorKind.SPAWN
    return sentence if never_ran else f"{sentence} after {took}"
