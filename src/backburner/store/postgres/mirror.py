"""What readers on any machine have of tasks: their output, as much as a bounded log keeps, and

where their files lie.
"""

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from backburner.model.task import StoredArtifacts
from backburner.model.values import value
from backburner.store.postgres.pieces import Growth, Held, Piece, Placed
from backburner.store.protocol import Output, Scope
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements


@value
class Written:
    """What an attempt has written that the record has not."""

    task: str
    attempt: int
    streams: Sequence[Growth]
    wrote: Output
    """All that it has written, to all streams."""


def put_outputs(run: Statements, orders: Sequence[Written]) -> list[frozenset[str]]:
    """Of each the streams that the record has now: none of an attempt that is not the present one,

    nor one of which it holds something else than was thought. Where an attempt begins to write,
    what those before it have written goes.
    """
    streams = [(order, grown) for order in orders for grown in order.streams]
    growths = [grown for _, grown in streams]
    which: dict[str, Any] = {
        "ids": to_json([order.task for order, _ in streams]),
        "attempts": to_json([order.attempt for order, _ in streams]),
        "streams": to_json([grown.stream for grown in growths]),
    }
    sinces = to_json([grown.before.total for grown in growths])
    if not all(grown.before.begun for grown in growths):
        run.rows("mirror_begin", **which, sinces=sinces)
        if any(order.attempt > 1 for order in orders):
            run.rows("mirror_forget", ids=which["ids"], attempts=which["attempts"])
    if any(grown.anew for grown in growths):
        run.rows("mirror_empty", **which, anew=to_json([grown.anew for grown in growths]))
    taken: dict[int, bytes] = {}
    if any(grown.joins is not None for grown in growths):
        joins = to_json([grown.joins for grown in growths])
        for number, data in run.rows("mirror_take_back", **which, sinces=sinces, joins=joins):
            taken[number] = bytes(data)
    totals = to_json([grown.after.total for grown in growths])
    added = run.rows("mirror_put", **which, sinces=sinces, totals=totals, **_new(growths, taken))
    if any(grown.drops for grown in growths):
        drops = [grown.drops or (0, 0) for grown in growths]
        run.rows(
            "mirror_drop",
            **which,
            totals=totals,
            firsts=to_json([first for first, _ in drops]),
            ends=to_json([end for _, end in drops]),
        )
    run.many(
        "tasks_wrote",
        wrote=[[each.task, each.attempt, each.wrote.total, each.wrote.dropped] for each in orders],
    )
    found = {number for (number,) in added}
    return [
        frozenset(
            grown.stream
            for number, (whose, grown) in enumerate(streams, 1)
            if whose is order and number in found
        )
        for order in orders
    ]


def _new(growths: Sequence[Growth], taken: dict[int, bytes]) -> dict[str, Any]:
    """The pieces to be added, as one string of bytes and where it is cut; ``taken`` is what goes

    before the first of a stream.
    """
    numbers: list[int] = []
    places: list[int] = []
    data: list[bytes] = []
    for number, grown in enumerate(growths, 1):
        for at, piece in grown.new:
            before = taken.pop(number, b"")
            numbers.append(number)
            places.append(at - len(before))
            data.append(before + piece)
    begins = [1]
    for piece in data:
        begins.append(begins[-1] + len(piece))
    return {
        "numbers": to_json(numbers),
        "places": to_json(places),
        "begins": to_json(begins[:-1]),
        "lengths": to_json([len(piece) for piece in data]),
        "data": b"".join(data),
    }


PUTS = Together(put_outputs, subject=lambda written: written.task, turn=4, lazy=True)
"""What a crash of the database takes with it is copied anew: the record holds less than is thought
then, and says so."""
LAST_PUTS = Together(put_outputs, subject=lambda written: written.task, turn=6)
"""Those before an end, after which nobody asks what it holds: they name every stream, and are on
disk when it is written."""


@value
class Version:
    """How far somebody has one stream of one attempt."""

    attempt: int
    stream: str
    beginning: int
    """How often the job had emptied it before."""
    total: int


@value
class Mirrored:
    """One stream of one attempt: what a reader lacks of it."""

    version: Version
    """That the reader has then."""
    pieces: Sequence[Placed]
    goes_on: bool
    """They follow what the reader has; else they are all there is."""


def _is_torn(end: int, output: Mirrored) -> bool:
    """Whether something is missing after what a reader has up to ``end``."""
    return end + sum(len(data) for _, data in output.pieces) != output.version.total


class Mirror(Changes):
    """Written by the node that has the log, read by everybody else."""

    async def put_output(self, written: Written, *, last: bool = False) -> frozenset[str]:
        """The streams that the record has now as said; see `put_outputs`."""
        return await self._writer.write_together(LAST_PUTS if last else PUTS, written)

    async def held_output(self, task_id: str, attempt: int) -> dict[str, Held]:
        """What the record has of each stream."""
        rows = await self._look(
            lambda read: read.rows("mirror_held", id=task_id, attempt=attempt),
        )
        found: dict[str, Held] = {}
        for stream, total, places, lengths, end in rows:
            pieces = tuple(Piece(at, length) for at, length in zip(places, lengths, strict=True))
            whole = bool(pieces) and pieces[-1].end == total
            found[stream] = Held(total, pieces, bytes(end) if whole else b"", begun=True)
        return found

    async def outputs(
        self, task_id: str, scope: Scope, had: Collection[Version] = ()
    ) -> list[Mirrored]:
        """Every stream of the last attempt that has written, but for what one has."""
        found = await self._outputs(task_id, scope, had)
        ends = {(version.attempt, version.stream): version.total for version in had}
        torn = {
            (each.version.attempt, each.version.stream)
            for each in found
            if each.goes_on and _is_torn(ends[each.version.attempt, each.version.stream], each)
        }
        if not torn:
            return found
        # Something that follows is gone already: a log with a hole is laid out as a whole.
        rest = [each for each in had if (each.attempt, each.stream) not in torn]
        return await self._outputs(task_id, scope, rest)

    async def _outputs(
        self, task_id: str, scope: Scope, had: Collection[Version]
    ) -> list[Mirrored]:
        rows = await self._look(
            lambda read: read.rows(
                "mirror_of_task",
                id=task_id,
                attempts=to_json([each.attempt for each in had]),
                streams=to_json([each.stream for each in had]),
                beginnings=to_json([each.beginning for each in had]),
                totals=to_json([each.total for each in had]),
            ),
            scope,
        )
        return [
            Mirrored(
                Version(*version),
                [(at, bytes(data)) for *_, at, data in pieces if at is not None],
                goes_on,
            )
            for (*version, goes_on), pieces in (
                (key, list(group)) for key, group in groupby(rows, key=lambda row: row[:5])
            )
        ]

    # Artifacts

    async def begin_artifacts(self, task_id: str, stored: StoredArtifacts) -> bool:
        """Before the first file goes there; what lies there already stays listed. False where the

        attempt is over.
        """
        return await self._put_artifacts("artifacts_begin", task_id, stored)

    async def put_artifacts(self, task_id: str, stored: StoredArtifacts) -> bool:
        """In the place of what was there. False where the attempt is over."""
        return await self._put_artifacts("artifacts_put", task_id, stored)

    async def _put_artifacts(self, name: str, task_id: str, stored: StoredArtifacts) -> bool:
        return bool(
            await self._count(
                name,
                id=task_id,
                attempt=stored.attempt,
                place=stored.place,
                folder=stored.folder,
                sizes=to_json(stored.sizes),
            )
        )

    async def artifacts_left(self, place: str, limit: int) -> list[str]:
        """Folders there whose tasks are forgotten."""
        rows = await self._look(lambda read: read.rows("artifacts_left", place=place, limit=limit))
        return [folder for (folder,) in rows]

    async def artifacts_removed(self, place: str, folder: str) -> None:
        """One of them is gone."""
        await self._count("artifacts_removed", place=place, folder=folder)
