"""The sentences that tell of a task: its wait, end (A5), readiness, and what it prints (X4)."""

from backburner.model import clock
from backburner.model.clock import SECOND, Instant, format_duration
from backburner.model.ending import NEVER_READY, TOO_EARLY, Ending
from backburner.model.order import NO_QUEUE, Wait
from backburner.model.states import ErrorKind, State


def how_it_ended(ending: Ending) -> str:
    """``finished``, ``failed: exit code 2``, ``was stopped`` …: what follows the task's name."""
    early = TOO_EARLY if (ending.summary or "").endswith(NEVER_READY) else ""
    if ending.state is State.SUCCEEDED:
        return f"finished{early}"
    if ending.state is State.CANCELED:
        return f"was stopped{early}"
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


def waiting(wait: Wait, now: Instant | None = None) -> str:
    """``waits for bg_…``, ``waits in queue build (3rd)``, ``next try in 4s``: the first reason."""
    if wait.not_before is not None:
        left = max(0, wait.not_before - (clock.now() if now is None else now)) / SECOND
        return f"next try in {format_duration(left)}"
    if wait.after:
        others = len(wait.after) - 1
        return f"waits for {wait.after[0]}" + (f" and {others} more" if others else "")
    if wait.unserved is not None:
        of_queue = "" if wait.unserved == NO_QUEUE else f" of queue {wait.unserved}"
        return f"waits for a worker{of_queue}, and there is none"
    if wait.place is None:
        return f"waits: {wait.owner_limit} of its owner run, and no more may"
    place = f"{wait.place}{_ORDINALS.get(wait.place % 100, _ORDINALS.get(wait.place % 10, 'th'))}"
    paused = ", which is paused" if wait.paused else ""
    return f"waits in queue {wait.queue}{paused} ({place})"


_ORDINALS = {1: "st", 2: "nd", 3: "rd", 11: "th", 12: "th", 13: "th"}


def end_text(title: str, task_id: str, ending: Ending, elapsed_us: int) -> str:
    """The whole sentence: ``tests (bg_…) finished after 12s``."""
    took = format_duration(elapsed_us / 1e6)
    sentence = f"{title} ({task_id}) {how_it_ended(ending)}"
    if ending.error is not None and ending.error.kind is ErrorKind.SPAWN:
        return sentence  # it never ran
    early = TOO_EARLY if sentence.endswith(TOO_EARLY) else ""
    return f"{sentence.removesuffix(early)} after {took}{early}"


def ready_text(title: str, task_id: str, seen: str) -> str:
    """``server (bg_…) is ready: it listens on port 8080``."""
    return f"{title} ({task_id}) is ready: {seen}"


def match_text(title: str, task_id: str, line: str, more: int) -> str:
    """``tests (bg_…) printed: ERROR …``, and how many more there were since the last telling."""
    return f"{title} ({task_id}) printed: {line}{and_more(more)}"


def said_text(title: str, task_id: str, said: str) -> str:
    """``tests (bg_…) says: 40 of 90 done``."""
    return f"{title} ({task_id}) says: {said}"


def and_more(count: int) -> str:
    """`` (and 37 more)``, or nothing."""
    return f" (and {count:,} more)" if count else ""


def flood_text(title: str, task_id: str, said: str, line: str) -> str:
    """Why no more matches are told, and the first of the last ones."""
    return f"{title} ({task_id}) printed: {line}; {said}"


def silent_text(title: str, task_id: str, silence_s: float) -> str:
    """``tests (bg_…) has printed nothing for 10m``."""
    return f"{title} ({task_id}) has {silence_said(silence_s)}"


def silence_said(silence_s: float) -> str:
    """``printed nothing for 10m``."""
    return f"printed nothing for {format_duration(silence_s)}"
