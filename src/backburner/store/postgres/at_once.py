"""What is written in one round trip, where nothing else waits to be written with it.

A transaction asks, and writes what follows from the answer. What each task goes through before it
runs a function of the database does instead (sql/0005_at_once.sql), and it comes to the same. Both
may be tried again after a lost connection: what was made or begun is found then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backburner.model.events import EventKind
from backburner.store.news import News
from backburner.store.postgres.admission import present
from backburner.store.postgres.engine import TASK
from backburner.store.postgres.notices import payloads
from backburner.store.postgres.statements import Statements
from backburner.store.record.claims import CLAIMS, Claim, claimed_by
from backburner.store.record.creates import CREATES, Create, insertion
from backburner.store.record.entrance import Asked, answer
from backburner.store.record.rows import to_task
from backburner.store.record.together import Together, groups


@dataclass(frozen=True, slots=True)
class _Way:
    """How orders of one kind are written."""

    happens: EventKind
    """To the task that each concerns."""
    write: Callable[[Statements, Sequence[Any], Mapping[str, Any], bool], Mapping[str, Any]]
    """Answers by the ids of tasks; what has none is a matter for a transaction."""


def write_at_once(
    run: Statements, wanted: list[Asked], known: int, *, again: bool
) -> tuple[list[Asked], News | None]:
    """What is left to be written, and what has happened to tasks by then.

    ``again``: the connection was lost before, and it is not known what was written. A database
    error means that nothing is now; a transaction can tell what is wrong.
    """
    group, *others = groups(wanted)
    kind = group[0].kind
    if others or kind is None or kind not in _WAYS:
        return wanted, None
    way = _WAYS[kind]
    by_task = {str(kind.subject(each.order)): each for each in group}
    notice, *more = payloads(News(tuple((task, way.happens) for task in by_task)))
    if more:
        return wanted, None
    orders = [each.order for each in group]
    found = way.write(run, orders, {"known": known, "notice": notice}, again)
    for task, said in found.items():
        answer([by_task[task]], [said])
    happened = tuple((task, way.happens) for task, said in found.items() if said is not None)
    left = [each for task, each in by_task.items() if task not in found]
    return left, News(happened) if happened else None


def _create(
    run: Statements, creates: Sequence[Create], common: Mapping[str, Any], _: bool
) -> Mapping[str, Any]:
    """What was made before has no answer: a transaction finds it."""
    owner = creates[0].task.owner
    if any(each.ending is not None or each.task.owner != owner for each in creates):
        return {}
    now = present()
    rows = run.many(
        "create_at_once",
        owner=owner,
        name=TASK,
        **insertion(creates, now["now"], limited=True),
        **now,
        **common,
    )
    return {task.id: task for task in map(to_task, rows)}


def _claim(
    run: Statements, claims: Sequence[Claim], common: Mapping[str, Any], again: bool
) -> Mapping[str, Any]:
    wanted = [claim.row for claim in claims]
    now = present()["now"]
    claimed = claimed_by(run.many("claim_at_once", now=now, wanted=wanted, **common))
    if again:
        claimed |= claimed_by(run.many("tasks_claimed", wanted=wanted))
    return {claim.task: claimed.get(claim.task) for claim in claims}


_WAYS: Mapping[Together[Any, Any], _Way] = {
    CREATES: _Way(EventKind.CREATED, _create),
    CLAIMS: _Way(EventKind.STARTED, _claim),
}
