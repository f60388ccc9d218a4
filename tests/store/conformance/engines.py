"""The engines that have to pass this suite. A further one adds a class and a line to ENGINES."""

import asyncio
import stat
from pathlib import Path
from typing import Protocol

from backburner.store.postgres import store as postgres
from backburner.store.protocol import Store
from backburner.store.sqlite.store import open_store
from tests import pgbouncer, postgres_server
from tests.store.raw import check_file


class Engine(Protocol):
    """How this suite gets at records of one kind."""

    share: float
    """How much of a long test it goes through: where each step is a round trip, not all."""

    async def create(self, folder: Path) -> str:
        """Make an empty record; its address, which another process can use too."""
        ...

    async def open(self, address: str) -> Store:
        """A handle of its own, as another process would have it."""
        ...

    async def drop(self, address: str) -> None:
        """Every handle is closed: check that nothing is left, and remove the record."""
        ...


class SqliteEngine:
    """The embedded store: an address is a home folder."""

    share = 1.0

    async def create(self, folder: Path) -> str:
        return str(folder / "home")

    async def open(self, address: str) -> Store:
        return open_store(Path(address), "this boot")

    async def drop(self, address: str) -> None:
        home = Path(address)
        if (home / "backburner.db").exists():
            check_file(home / "backburner.db")
        left = [path for path in home.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
        assert left == [], "a closed store has left its socket behind"
        # The last one to close has put everything into the one file.
        assert {path.name for path in home.iterdir()} <= {"backburner.db", "write.lock", "wake"}


class PostgresEngine:
    """The shared store: an address is that of a database."""

    share = 0.2

    async def create(self, folder: Path) -> str:
        return await asyncio.to_thread(postgres_server.server().borrow)

    async def open(self, address: str) -> Store:
        return await postgres.open_store(address)

    async def drop(self, address: str) -> None:
        await asyncio.to_thread(postgres_server.server().give_back, address)


class PooledEngine(PostgresEngine):
    """The same, read over a pooler in transaction mode; its address follows the record's."""

    share = 0.05

    async def create(self, folder: Path) -> str:
        address = await super().create(folder)
        return f"{address} {pgbouncer.shared(address)}"

    async def open(self, address: str) -> Store:
        return await postgres.open_store(*address.split())

    async def drop(self, address: str) -> None:
        await super().drop(address.split(maxsplit=1)[0])


ENGINES: dict[str, Engine] = {
    "sqlite": SqliteEngine(),
    "postgres": PostgresEngine(),
    "postgres-pooled": PooledEngine(),
}
