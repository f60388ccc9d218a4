"""The states of a task, and the one table of the changes between them."""

from enum import StrEnum


class State(StrEnum):
    """Where a task is in its life."""

    QUEUED = "queued"
    """On disk, and not started yet."""
    RUNNING = "running"
    """Being carried out."""
    INPUT_REQUIRED = "input_required"
    """Asked a question, and waits for the answer."""
    SUCCEEDED = "succeeded"
    """Ended well. Final."""
    FAILED = "failed"
    """Ended otherwise; the error says how. Final."""
    CANCELED = "canceled"
    """Ended because someone asked for it, and nothing of it is left. Final."""

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return not TRANSITIONS[self]


TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.FAILED, State.CANCELED}),
    State.RUNNING: frozenset(
        # Back to queued: a further attempt, after it was proved that this one is over.
        {State.INPUT_REQUIRED, State.QUEUED, State.SUCCEEDED, State.FAILED, State.CANCELED}
    ),
    State.INPUT_REQUIRED: frozenset(
        {State.RUNNING, State.QUEUED, State.SUCCEEDED, State.FAILED, State.CANCELED}
    ),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELED: frozenset(),
}

ACTIVE: tuple[State, ...] = tuple(state for state in State if TRANSITIONS[state])
TERMINAL: tuple[State, ...] = tuple(state for state in State if not TRANSITIONS[state])


def sources(target: State) -> tuple[State, ...]:
    """The states that ``target`` may be entered from: the guard of every change."""
    return tuple(state for state in State if target in TRANSITIONS[state])


class ErrorKind(StrEnum):
    """Why a task failed."""

    ERROR = "error"
    """An exception, or a tool that said so."""
    EXIT = "exit"
    """An exit code other than 0."""
    TIMEOUT = "timeout"
    """It passed its maximum run time and was ended."""
    ORPHANED = "orphaned"
    """The worker or the machine that carried it out died."""
    KILLED = "killed"
    """Somebody else ended it: a signal from outside, or the kernel for lack of memory."""
    SPAWN = "spawn"
    """It could not be started."""


class Kind(StrEnum):
    """What sort of work a task is."""

    SHELL = "shell"
    PYTHON = "python"
    TOOL = "tool"
    AGENT = "agent"
