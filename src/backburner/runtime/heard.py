"""That a machine is heard of: on record under the number of its worker, and as one that is back.

While a machine was silent nothing was let in for its places. Its beats are the engine's, which lets
nothing in; so it says anew who it is when they go on.
"""

from collections.abc import Callable

from backburner.model import clock
from backburner.model.node import Node
from backburner.store.postgres.engine_worker import EngineWorker
from backburner.store.postgres.node import NodeStore

NOBODY = 0
"""No worker of the engine has this number."""


class Heard:
    """Of one machine; it asks a few times in the time after which it would be dead."""

    def __init__(
        self, store: NodeStore, engine: EngineWorker, report: Callable[[str], None]
    ) -> None:
        self._store = store
        self._engine = engine
        self._report = report
        self._asked_at = _now_s()
        self._was_away = False

    async def see_to_it(self, node: Node) -> None:
        """The engine's worker says that it lives, but not while it only waits for its last jobs."""
        await self._store.check_format()
        number = self._engine.number
        if number is not None and not await self._store.is_worker(number):
            self._report("the others took this machine for dead: it begins anew")
            self._engine.begin_anew()
        number = self._engine.number
        quiet_s = None if number is None else await self._store.quiet_s(number)
        is_back = self._is_back(quiet_s, node.silent_s)
        if quiet_s is None or node.draining or is_back:
            await self._store.put_node(node, number or NOBODY)
            self._was_away = False

    def _is_back(self, quiet_s: float | None, silent_s: float) -> bool:
        """Half of its time says enough: of each whole one some look falls into the second half,

        or two looks are further apart than that.
        """
        now, most = _now_s(), silent_s / 2
        is_quiet = quiet_s is not None and quiet_s > most
        self._was_away = self._was_away or is_quiet or now - self._asked_at > most
        self._asked_at = now
        return self._was_away and not is_quiet


def _now_s() -> float:
    """Goes on while a machine is suspended, as the database's clock does."""
    return clock.boot_now() / clock.SECOND
