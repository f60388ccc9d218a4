"""The output of tasks in the record: as much as a bounded log keeps, for readers on any machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One stream of one attempt: pieces of it, with their places."""

    attempt: int
    stream: str
    total: int
    pieces: Sequence[tuple[int, bytes]]


class Mirror(Changes):
    """Written by the node that has the log, read by everybody else."""

    async def put_output(self, task_id: str, output: Mirrored) -> bool:
        """In the place of what was there. False where the attempt is not the present one."""
        return bool(
            await self._count(
                "mirror_put",
                id=task_id,
                attempt=output.attempt,
                stream=output.stream,
                total=output.total,
                offsets=to_json([offset for offset, _ in output.pieces]),
                lengths=to_json([len(data) for _, data in output.pieces]),
                data=b"".join(data for _, data in output.pieces),
            )
        )

    async def outputs(self, task_id: str, attempt: int, scope: Scope) -> list[Mirrored]:
        """Every stream of an attempt."""
        rows = await self._look(
            lambda read: read.rows("mirror_of_task", id=task_id, attempt=attempt), scope
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
