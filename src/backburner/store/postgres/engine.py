"""Procrastinate as the engine: its jobs lie in the same database, so that a task and its job are
written in one transaction, and neither exists without the other.

Only functions and queries of Procrastinate's own schema are used.
"""

from collections.abc import Sequence

from backburner.store.engine import Asked, Job
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

    def stalled(self, read: Asked, silent_s: float) -> list[Job]:
        """See Engine.stalled."""
        rows = read.rows("jobs_stalled", name=TASK, silent_s=float(silent_s))
        return [Job(task, attempt) for task, attempt in rows]
