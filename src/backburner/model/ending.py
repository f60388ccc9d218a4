"""How a task ended, and the one table of how every tool set spells it.

An `Ending` can only be made through its named constructors, so that a state, an error and an
exit code that contradict each other cannot be written.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backburner.model.states import ErrorKind, State
from backburner.model.values import value

NEVER_READY = "it ended before it was ready"
"""The end of the summary of a task that ended without an error, and too early."""
TOO_EARLY = ", before it was ready"
"""The end of the message of one that failed."""

_EXIT_CODES = range(1, 256)


@value
class TaskError:
    """Why a task failed."""

    kind: ErrorKind
    message: str


@value
class Ending:
    """The last change of a task."""

    state: State
    error: TaskError | None = None
    exit_code: int | None = None
    summary: str | None = None
    result: Any = None

    @classmethod
    def succeeded(
        cls, *, exit_code: int | None = None, summary: str | None = None, result: Any = None
    ) -> "Ending":
        """It ended well."""
        return cls(State.SUCCEEDED, None, exit_code, summary, result)

    @classmethod
    def exited(cls, code: int, message: str | None = None) -> "Ending":
        """A process ended by itself, with this exit code."""
        if code == 0:
            return cls.succeeded(exit_code=0)
        error = TaskError(ErrorKind.EXIT, message or f"exit code {code}")
        return cls(State.FAILED, error, code)

    @classmethod
    def failed(cls, kind: ErrorKind, message: str, *, result: Any = None) -> "Ending":
        """It failed in a way that has no exit code."""
        if kind is ErrorKind.EXIT:
            raise ValueError("an exit has a code: use Ending.exited")
        return cls(State.FAILED, TaskError(kind, message), None, None, result)

    @classmethod
    def canceled(cls) -> "Ending":
        """It was stopped on request, and nothing of it is left."""
        return cls(State.CANCELED)

    def before_ready(self) -> "Ending":
        """The same, of a task that was to become ready and never was (X4)."""
        if self.error is None:
            if (self.summary or "").endswith(NEVER_READY):
                return self
            summary = f"{self.summary}; {NEVER_READY}" if self.summary else NEVER_READY
            return replace(self, summary=summary)
        if self.error.message.endswith(TOO_EARLY):
            return self
        error = replace(self.error, message=self.error.message + TOO_EARLY)
        return replace(self, error=error)

    def document(self) -> dict[str, Any]:
        """As `result.json` says it."""
        document: dict[str, Any] = {"status": self.state.value, "exit_code": self.exit_code}
        if self.error is not None:
            document["error"] = {"kind": self.error.kind.value, "message": self.error.message}
        if self.summary is not None:
            document["summary"] = self.summary
        if self.result is not None:
            document["result"] = self.result
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Ending":
        """The inverse of `document`. KeyError, ValueError or TypeError where it is none."""
        error = document.get("error")
        ending = cls(
            State(document["status"]),
            None if error is None else TaskError(ErrorKind(error["kind"]), error["message"]),
            document["exit_code"],
            document.get("summary"),
            document.get("result"),
        )
        if not ending._may_be():
            raise ValueError("it contradicts itself")
        return ending

    def _may_be(self) -> bool:
        """Whether a named constructor could have made it."""
        said: list[object] = [self.summary, self.error.message if self.error else None]
        if not all(isinstance(text, str | None) for text in said):
            return False
        if self.exit_code is not None and type(self.exit_code) is not int:
            return False  # True and 1.0 are in the range, and in no column of numbers
        match self.state:
            case State.SUCCEEDED:
                return self.error is None and self.exit_code in (None, 0)
            case State.FAILED:
                exited = self.error is not None and self.error.kind is ErrorKind.EXIT
                return self.error is not None and exited == (self.exit_code in _EXIT_CODES)
            case State.CANCELED:
                return self.error is None and self.exit_code is None
            case _:
                return False


@value
class JobSpelling:
    """An ending as `manage_bg_jobs` shows it: a status and at most one flag."""

    status: str
    flag: str | None = None
    """killed, timed_out or died."""
    exit_code: int | None = None
    """-1 where the job has no exit code of its own; None means the task's own."""


@value
class EndingSpelling:
    """One row of the table of endings: the same end in every tool set's words."""

    job: JobSpelling
    bg_task: str
    check_background_tool: str
    spawn_background: str
    mcp: str
    mcp_is_error: bool = False


def _failure(flag: str | None = None, *, mcp: str = "completed") -> EndingSpelling:
    job = JobSpelling("failed", flag, -1 if flag else None)
    return EndingSpelling(job, "failed", "error", "failed", mcp, mcp_is_error=mcp == "completed")


ENDINGS: dict[tuple[State, ErrorKind | None], EndingSpelling] = {
    (State.SUCCEEDED, None): EndingSpelling(
        JobSpelling("done"), "completed", "completed", "succeeded", "completed"
    ),
    (State.FAILED, ErrorKind.EXIT): _failure(),
    (State.FAILED, ErrorKind.ERROR): _failure(),
    (State.CANCELED, None): EndingSpelling(
        JobSpelling("failed", "killed", -1), "stopped", "cancelled", "canceled", "cancelled"
    ),
    (State.FAILED, ErrorKind.TIMEOUT): _failure("timed_out"),
    (State.FAILED, ErrorKind.KILLED): _failure("died"),
    (State.FAILED, ErrorKind.ORPHANED): _failure("died", mcp="failed"),
    (State.FAILED, ErrorKind.SPAWN): _failure("died", mcp="failed"),
}


def spelling(state: State, error: TaskError | None) -> EndingSpelling:
    """The row for an ending."""
    return ENDINGS[state, error.kind if error else None]
