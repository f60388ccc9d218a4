"""What starts were left for nobody: the environment of a task that has ended must not stay."""

from backburner.model.home import Home
from backburner.store.protocol import Store
from backburner.work import handover


async def discard_of_ended(store: Store, home: Home) -> None:
    """Discard what belongs to tasks that have ended: whoever ended them died before doing so."""
    for piece in handover.pieces(home):
        task = await store.get(piece.task)
        if task is not None and task.state.terminal and task.hand_over == piece.name:
            handover.discard(home, piece.task, piece.name)
