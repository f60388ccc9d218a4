"""Input for commands on other machines: pieces in the record, which their node hands on."""

from backburner.model.values import value
from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes

PIECE_MAX_BYTES = 256 * 1024
"""What a job takes whole or not at all."""

_MOST_WAITING = 100
"""Pieces for one task."""


@value
class Piece:
    """Something for the input of one attempt; its number is above those of earlier ones."""

    number: int
    task: str
    attempt: int
    data: bytes | None
    """None is the end."""


class Inputs(Changes):
    """Written by whoever sends, taken by the node that has the command."""

    async def send_input(
        self, task_id: str, attempt: int, scope: Scope, data: bytes | None
    ) -> int | None:
        """Leave a piece for this attempt. None where it does not run, or 100 pieces wait for it."""
        rows = await self._writer.write(
            lambda run: run.rows(
                "input_send",
                id=task_id,
                attempt=attempt,
                owner=scope.owner,
                session=scope.session,
                data=data,
                most=_MOST_WAITING,
            ),
            owner=scope.owner,
        )
        return rows[0][0] if rows else None

    async def input_outcome(self, number: int, scope: Scope) -> str | None:
        """What became of it: None where nothing did yet, empty where the job has it."""
        rows = await self._look(lambda read: read.rows("input_outcome", seq=number), scope)
        return rows[0][0] if rows else None

    async def forget_input(self, number: int, scope: Scope) -> str | None:
        """Nobody hands it on any more. Answers what became of it before."""
        rows = await self._writer.write(
            lambda run: run.rows("input_forget", seq=number), owner=scope.owner
        )
        return rows[0][0] if rows else None
