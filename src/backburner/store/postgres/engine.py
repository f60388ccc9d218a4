"""Procrastinate as the engine: its jobs lie in the same database, so that a task and its job are
written in one transaction, and neither exists without the other.

What is written there goes through the functions of Procrastinate's own schema; its tables are read.
"""

from collections.abc import Sequence

from backburner.store.engine import Asked, Job, Silence
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Statements

TASK = "backburner"
"""What a worker of Procrastinate has to know how to do."""


def schema() -> str:
    """The tables and functions of Procrastinate."""
    from procrastinate.schema import SchemaManager  # slow to load, and seldom needed

    return SchemaManager.get_schema()


class Procrastinate:
    """See `backburner.store.engine.Engine` for what each method promises."""

    def dispatch(self, run: Statements, **turn: int | str) -> None:
        """See Engine.dispatch."""
        run.rows("jobs_defer", name=TASK, **turn)

    def cancel(self, run: Statements, jobs: Sequence[Job]) -> None:
        """See Engine.cancel."""
        run.rows("jobs_cancel", job_keys=to_json([job.key for job in jobs]))

    def silent(self, read: Asked, silent_s: float, contact_s: float) -> list[Silence]:
        """See Engine.silent."""
        times = {"silent_s": float(silent_s), "contact_s": float(contact_s)}
        rows = read.rows("jobs_silent", name=TASK, **times)
        return [Silence(Job(task, attempt), *how) for task, attempt, *how in rows]
