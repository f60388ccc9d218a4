"""What goes to the engine: attempts that may start, when they may, in the transaction that says so.

The engine takes jobs by their age, so whose turn it is is decided here: only about as many are let
in as machines have places for, owners and their sessions in turn. Not while other tasks are waited
for, nor while the queue is full or paused, nor above the limit of their owner. The function `admit`
of the database says which (sql/0002_admission.sql): to ask for each would be a round trip for each,
while all machines wait for the lock.
"""

from collections.abc import Callable

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.order import LONGEST_RETRY_S
from backburner.store.engine import Engine, Job
from backburner.store.postgres.statements import Statements
from backburner.store.record.rows import to_json

RESERVE = 8
"""Let in on each route beyond the places that are free: a machine that has just become free finds
one there. Each is one that somebody else's next task waits behind."""

_CHANGE_THE_RULES = frozenset(
    {"queue_put", "queue_pause", "queue_remove", "owner_limit_put", "owner_limit_clear"}
)
"""What was let in before these is called back, unless a machine has taken it. The database itself
takes the jobs of what is let in no more (`call_back`)."""

_MAY_MATTER = _CHANGE_THE_RULES | {
    "tasks_insert",
    "task_requeue",
    "task_fail_try",
    "tasks_end",
    "task_let_in_again",
    "task_hand_on",
    "node_put",
}
"""The statements after which there may be something to let in, or to call back."""


def admission(engine: Engine) -> Callable[[Statements], None]:
    """A step before each commit."""

    def admit(run: Statements) -> None:
        if not run.ran.keys() & _MAY_MATTER:
            return
        ended = run.ran.get("tasks_end", ())
        # Earlier attempts too, or a new task of that id could not be let in.
        over = [Job(task, n) for task, last, let_in in ended if let_in for n in range(1, last + 1)]
        if run.ran.keys() & _CHANGE_THE_RULES:
            run.rows("tasks_recall")
        if over:
            engine.cancel(run, over)
        let_in(run, engine)

    return admit


def let_in(run: Statements, engine: Engine) -> None:
    """Give the engine what may go there now."""
    fresh = (*run.ran.get("tasks_insert", ()), *run.ran.get("task_fail_try", ()))
    engine.dispatch(
        run,
        **present(run.now()),
        ended=to_json([task for task, _, _ in run.ran.get("tasks_end", ())]),
        fresh=to_json([row[0] for row in fresh]),
    )


def present(now: Instant) -> dict[str, int]:
    """What `admit` has to know of this moment."""
    return {
        "now": now,
        "latest": now + round(LONGEST_RETRY_S * clock.SECOND),
        "reserve": RESERVE,
    }
