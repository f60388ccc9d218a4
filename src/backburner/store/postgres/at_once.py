"""What is written in one round trip, where nothing else waits to be written with it.

A transaction asks, and writes what follows from the answer. What each task goes through before it
runs a function of the database does instead (sql/0005_at_once.sql), and it comes to the same. Where
the connection is lost meanwhile nobody knows whether it was written; a transaction finds that out:
a task that is there already is what was wanted, and so is one that was `claimed_before`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backburner.model.clock import Instant
from backburner.model.events import EventKind
from backburner.store.news import News
from backburner.store.postgres.admission import present
from backburner.store.postgres.engine import TASK
from backburner.store.postgres.notices import payloads
from backburner.store.postgres.statements import Statements
from backburner.store.record.claims import CLAIMS, Claim, Claimed, claimed_by
from backburner.store.record.creates import CREATES, Create
from backburner.store.record.entrance import Asked, answer
from backburner.store.record.rows import to_task
from backburner.store.record.together import Together, groups
from backburner.store.record.transaction import Row

Ask = Callable[..., list[Row]]
"""Runs a statement with the values that all of these have, and its own."""


def write_at_once(run: Statements, wanted: list[Asked], known: int) -> tuple[list[Asked], News]:
    """What is answered now, and what has happened; the rest is for a transaction.

    ``known`` is the newest format that this program knows. A database error: nothing was written,
    unless the connection is lost.
    """
    group, *others = groups(wanted)
    kind = group[0].kind
    if others or kind is None or kind not in _WAYS:
        return [], News()
    happens, write = _WAYS[kind]
    by_task = {str(kind.subject(each.order)): each for each in group}
    notice, *more = payloads(News(tuple((task, happens) for task in by_task)))
    if more:
        return [], News()

    def ask(name: str, /, **values: Any) -> list[Row]:
        return run.alone(name, known=known, notice=notice, **values)

    found = write(ask, [each.order for each in group], run.now())
    for task, said in found.items():
        answer([by_task[task]], [said])
    happened = tuple((task, happens) for task, said in found.items() if said is not None)
    return [by_task[task] for task in found], News(happened)


def _create(ask: Ask, creates: Sequence[Create], now: Instant) -> Mapping[str, Any]:
    owner = creates[0].task.owner
    if any(each.ending is not None or each.task.owner != owner for each in creates):
        return {}
    sorts = Counter(each.sort for each in creates)
    least = {sort: min(each.limit for each in creates if each.sort == sort) for sort in sorts}
    rows = ask(
        "create_at_once",
        owner=owner,
        rows=[each.row(now) for each in creates],
        sorts=[[*sort, least[sort] - count] for sort, count in sorts.items()],
        name=TASK,
        **present(now),
    )
    return {task.id: task for task in map(to_task, rows)}


def _claim(ask: Ask, claims: Sequence[Claim], now: Instant) -> Mapping[str, Claimed | None]:
    if any(claim.unsure for claim in claims):
        return {}
    rows = ask("claim_at_once", now=now, wanted=[claim.row for claim in claims])
    claimed = claimed_by(rows)
    return {claim.task: claimed.get(claim.task) for claim in claims}


_WAYS: Mapping[
    Together[Any, Any], tuple[EventKind, Callable[[Ask, Any, Instant], Mapping[str, Any]]]
] = {
    CREATES: (EventKind.CREATED, _create),
    CLAIMS: (EventKind.STARTED, _claim),
}
"""What happens to a task by it, and how it is written: answers by the ids of tasks."""


def claimed_before(run: Statements, group: Sequence[Asked], answers: Sequence[Any]) -> list[Any]:
    """The answers to claims that may have been on record before: then they hold."""
    wanted = [each.order.row for each in group]
    claimed = claimed_by(run.many("tasks_claimed", wanted=wanted))
    return [said or claimed.get(each.order.task) for each, said in zip(group, answers, strict=True)]
