"""What starts were left for nobody: an environment that no start will use must not stay."""

from backburner.model.home import Home
from backburner.store.protocol import Store
from backburner.work import handover

YOUNG_S = 3600.0
"""What was left shortly ago may belong to a task that is about to be written."""


async def discard_unneeded(store: Store, home: Home) -> None:
    """Discard what belongs to tasks that have ended, whose enders died before doing so, and what

    has belonged to no task for long.
    """
    for piece in handover.pieces(home):
        task = await store.get(piece.task)
        if task is None or task.hand_over != piece.name:
            unneeded = piece.age_s > YOUNG_S
        else:
            unneeded = task.state.terminal
        if unneeded:
            handover.discard(home, piece.task, piece.name)
