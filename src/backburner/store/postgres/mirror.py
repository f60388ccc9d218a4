"""What readers on any machine have of tasks: their output, as much as a bounded log keeps, and

where their files lie.
"""

from collections.abc import Collection, Sequence

from backburner.model.task import StoredArtifacts
from backburner.model.values import value
from backburner.store.protocol import Output, Scope
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Statements


@value
class Mirrored:
    """One stream of one attempt: pieces of it, with their places."""

    attempt: int
    stream: str
    total: int
    pieces: Sequence[tuple[int, bytes]]

    @property
    def version(self) -> str:
        """Tells it from what was there before."""
        return version_of(self.attempt, self.stream, self.total)


def version_of(attempt: int, stream: str, total: int) -> str:
    """See `Mirrored.version`."""
    return f"{attempt}{stream}{total}"


class Mirror(Changes):
    """Written by the node that has the log, read by everybody else."""

    async def put_output(self, task_id: str, streams: Sequence[Mirrored], wrote: Output) -> None:
        """In the place of what was there; ``wrote`` is how much there is of all streams.

        Of an attempt that is not the present one nothing is kept.
        """

        def operation(run: Statements) -> None:
            for output in streams:
                run.rows(
                    "mirror_put",
                    id=task_id,
                    attempt=output.attempt,
                    stream=output.stream,
                    total=output.total,
                    offsets=to_json([offset for offset, _ in output.pieces]),
                    lengths=to_json([len(data) for _, data in output.pieces]),
                    data=b"".join(data for _, data in output.pieces),
                )
            run.rows(
                "task_wrote",
                id=task_id,
                attempt=streams[0].attempt,
                total=wrote.total,
                dropped=wrote.dropped,
            )

        await self._writer.write(operation)

    async def outputs(
        self, task_id: str, scope: Scope, had: Collection[str] = ()
    ) -> list[Mirrored]:
        """Every stream of the last attempt that has written, but for versions that one has."""
        rows = await self._look(
            lambda read: read.rows("mirror_of_task", id=task_id, had=to_json(sorted(had))),
            scope,
        )
        found: list[Mirrored] = []
        for of_attempt, stream, total, offsets, lengths, data in rows:
            pieces: list[tuple[int, bytes]] = []
            begin = 0
            for offset, length in zip(offsets, lengths, strict=True):
                pieces.append((offset, bytes(data[begin : begin + length])))
                begin += length
            found.append(Mirrored(of_attempt, stream, total, pieces))
        return found

    # Artifacts

    async def put_artifacts(self, task_id: str, stored: StoredArtifacts) -> bool:
        """In the place of what was there. False where the attempt is over."""
        return bool(
            await self._count(
                "artifacts_put",
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
