"""What goes to the engine: attempts that may start, when they may, in the transaction that says so.

The engine takes jobs by their age, so who is let in when is decided here: not while other tasks are
waited for, nor while the queue is full or paused.
"""

from collections.abc import Callable

from backburner.model import clock
from backburner.store.engine import Dispatch, Engine, Job
from backburner.store.postgres.statements import Statements

_MAY_MATTER = frozenset(
    {
        "task_insert",
        "task_requeue",
        "task_fail_try",
        "tasks_end",
        "task_let_in_again",
        "task_hand_on",
        "queue_put",
        "queue_pause",
        "queue_remove",
    }
)
"""The statements after which there may be something to let in, or to call back."""

ENDED = frozenset({"tasks_end"})


def admission(engine: Engine) -> Callable[[Statements], None]:
    """A step before each commit."""

    def admit(run: Statements) -> None:
        ran = run.ran & _MAY_MATTER
        if ran & ENDED:
            ended = [Job(task, attempt) for task, attempt in run.rows("tasks_called_back")]
            if ended:
                engine.cancel(run, ended)
        if ran:
            _let_in(run, engine)

    return admit


def _let_in(run: Statements, engine: Engine) -> None:
    now = clock.now()
    rows = run.rows("tasks_let_in", now=now)
    jobs = [Dispatch(Job(task, attempt), line, at) for task, attempt, line, at in rows]
    due = [each for each in jobs if each.not_before is None]
    later = [each for each in jobs if each.not_before is not None]
    if due:
        engine.dispatch(run, due)
    if later:
        engine.delay(run, later)
