"""Everything that can go wrong, with a stable code and a remedy in the text.

BackburnerError
├── UsageError          usage          the call itself is wrong; nothing was changed
│   └── InvalidArguments  arguments    a tool was called with arguments that it does not take
├── NotFound            not_found      no such task for this caller (or not yours: the same answer)
│   └── NoSuchQueue     no_such_queue  work is meant for a queue that nobody has made
├── Ambiguous           ambiguous      a prefix fits several tasks
├── NotAllowed          not_allowed    the caller may not do this
├── LimitReached        limit          one more would pass a limit
├── Conflict            conflict       the id is taken by something else
├── TimeIsUp            timeout        a wait ran out; the task goes on
├── NeverReady          never_ready    the task ended before it was ready
├── InputRefused        input          the task takes no input, or none any more
│   ├── InputNotYet     input_not_yet  it has not started yet: wait for that and try again
│   └── NobodyAsked     nobody_asked   no question of it is open, and it takes no input
├── ToolError           tool           a tool says that it failed, in words for the model
├── InternalError       internal       a tool failed in a way that is not for the model to see
├── ConnectionRequired  connection     a tool needs an account that nobody has connected
├── StoreError          store          the record cannot be read or written
│   ├── StoreBusy       busy           another process holds the record for too long
│   ├── StoreClosed     closed         it was closed meanwhile
│   ├── StoreFull       full           no room on the disk
│   └── StoreUnusable   unusable       not writable, corrupt, too new, or an unsafe SQLite
│       └── StoreAway   away           its database cannot be reached at present
├── KeeperUnreachable   keeper         nobody is there to carry the task out
└── ArtifactsUnreachable  artifacts    the place where artifacts lie does not answer, or not to us
"""

from typing import ClassVar

from backburner.model.values import value


class BackburnerError(Exception):
    """The base of every error that Backburner raises on purpose."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class UsageError(BackburnerError):
    """The call itself is wrong; nothing was changed."""

    code = "usage"


class NotFound(BackburnerError):
    """There is no such task for this caller. One that belongs to someone else looks the same."""

    code = "not_found"


class NoSuchQueue(NotFound):
    """Work is meant for a queue that nobody has made. Names of queues are nobody's secret."""

    code = "no_such_queue"


class Ambiguous(BackburnerError):
    """A prefix fits several tasks, or schedules; the candidates are listed."""

    code = "ambiguous"

    def __init__(self, prefix: str, candidates: list[str], what: str = "tasks") -> None:
        super().__init__(
            f"{prefix!r} fits {len(candidates)} {what}: {', '.join(candidates)}",
            remedy="give more of the id",
        )
        self.candidates = candidates


class NotAllowed(BackburnerError):
    """The caller may not do this."""

    code = "not_allowed"


class LimitReached(BackburnerError):
    """One more would pass a limit; the text names it."""

    code = "limit"


class Conflict(BackburnerError):
    """The id is already taken by something else."""

    code = "conflict"


class TimeIsUp(BackburnerError):
    """A wait ran out. The task goes on."""

    code = "timeout"


class InputRefused(BackburnerError):
    """The task takes no input, or none any more."""

    code = "input"


class InputNotYet(InputRefused):
    """The task has not started yet: wait for that and try again."""

    code = "input_not_yet"


class NobodyAsked(InputRefused):
    """No question of the task is open, and it takes no input."""

    code = "nobody_asked"


class NeverReady(BackburnerError):
    """The task ended before it was ready, which is what was waited for."""

    code = "never_ready"


class InvalidArguments(UsageError):
    """A tool was called with arguments that it does not take; the text says which and why."""

    code = "arguments"


class ToolError(BackburnerError):
    """Raised by a tool: it failed, and this text is for the model."""

    code = "tool"


class InternalError(BackburnerError):
    """Raised by a tool: it failed for a reason that is logged, and not told to the model."""

    code = "internal"


class ConnectionRequired(BackburnerError):
    """Raised by a tool: it needs an account that nobody has connected. Neither success nor error"""

    code = "connection"

    def __init__(self, provider: str, *, remedy: str = "") -> None:
        super().__init__(
            f"a connection to {provider} is required", remedy=remedy or f"connect {provider} first"
        )
        self.provider = provider


class StoreError(BackburnerError):
    """The record cannot be read or written."""

    code = "store"


class StoreBusy(StoreError):
    """Another process holds the record for too long."""

    code = "busy"


class StoreClosed(StoreError):
    """The record was closed while something was still to be done with it."""

    code = "closed"


class StoreFull(StoreError):
    """There is no room on the disk."""

    code = "full"


class StoreUnusable(StoreError):
    """The record is not writable, corrupt, of a newer version, or SQLite is unsafe."""

    code = "unusable"


class StoreAway(StoreUnusable):
    """The database of the record cannot be reached at present; it may be back in a moment."""

    code = "away"


class KeeperUnreachable(BackburnerError):
    """Nobody is there to carry the task out, and none could be started."""

    code = "keeper"


class ArtifactsUnreachable(BackburnerError):
    """The place where artifacts of a shared record lie does not answer, or refuses us."""

    code = "artifacts"


@value
class Spelling:
    """How one error code is said on each surface."""

    exit_status: int
    http_status: int
    mcp_code: int


SPELLINGS: dict[str, Spelling] = {
    "error": Spelling(1, 500, -32603),
    "usage": Spelling(2, 422, -32602),
    "not_found": Spelling(3, 404, -32602),
    "no_such_queue": Spelling(3, 422, -32602),
    "ambiguous": Spelling(2, 409, -32602),
    "not_allowed": Spelling(4, 403, -32602),
    "limit": Spelling(5, 429, -32603),
    "conflict": Spelling(2, 409, -32602),
    "timeout": Spelling(124, 408, -32603),
    "never_ready": Spelling(1, 409, -32603),
    "input": Spelling(1, 409, -32602),
    "input_not_yet": Spelling(1, 409, -32602),
    "nobody_asked": Spelling(1, 409, -32602),
    "arguments": Spelling(2, 422, -32602),
    "tool": Spelling(1, 500, -32603),
    "internal": Spelling(1, 500, -32603),
    "connection": Spelling(4, 424, -32603),
    "store": Spelling(1, 503, -32603),
    "busy": Spelling(1, 503, -32603),
    "closed": Spelling(1, 503, -32603),
    "full": Spelling(1, 507, -32603),
    "unusable": Spelling(1, 503, -32603),
    "away": Spelling(1, 503, -32603),
    "keeper": Spelling(1, 503, -32603),
    "artifacts": Spelling(1, 503, -32603),
}
