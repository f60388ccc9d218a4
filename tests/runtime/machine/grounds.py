"""Where a life is lived: what applications open, who carries out the work, and who of them dies.

A home folder with its keeper and guardian; or a record that four workers share, and its database.
What is done there, and what must hold at the end, is the same on both, but for what stands here.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

import psycopg

from backburner import Kind, Task
from backburner.model.home import AttemptFolder, Home
from backburner.runtime.election import call_keeper
from backburner.store.postgres.node import NodeStore
from backburner.store.protocol import Store
from backburner.work import handover
from tests import leftovers
from tests.faults.victims import guardians_of, keeper_of, kill, kill_all_of_ours
from tests.nodes.workers import WorkerProcess
from tests.postgres_server import Server
from tests.runtime.machine.behaviours import WORK
from tests.waiting import wait_until, wait_until_async

WORKERS = 4
TIDY_S = 60
"""Within which somebody has seen to what the dead have left, on a machine where much else runs."""

NEVER_S = 600
"""Until a worker that is not heard of is dead: each that is killed comes back at once, and nothing
may depend on others taking it for dead."""

SILENT_S = 8
"""The same of an application, which does not come back: only its silence says that it is gone. Much
longer than one is held up, so that no living one is taken for dead."""

Files = tuple[str | None, str]
"""A log, where there has to be one, and a `result.json`."""


class Ground(Protocol):
    """One of them."""

    address: str
    """What `Backburner.open` takes."""
    folder: Path
    """Where tasks leave their marks."""
    homes: list[Path]
    """To be removed when the life is over."""
    has_guardian: bool
    has_database: bool
    """Which can be killed."""
    carries_tools: bool
    """Whether a carrier runs tools in itself, so that they die with it."""
    sees_deaths: bool
    """Whether it is known of an application that is gone that nothing of it runs any more."""

    def environment(self) -> dict[str, str]:
        """Of one more application."""
        ...

    def carrier(self, number: int) -> int | None:
        """The process that carries out the work, or one of them; None while there is none."""
        ...

    def kill_carrier(self, number: int) -> None:
        """As a crash would. Who would be started anew is."""
        ...

    def kill_carriers(self) -> None:
        """All of them at once."""
        ...

    def kill_guardian(self) -> None:
        """Who looks after the carrier."""
        ...

    def kill_database(self, *, with_carriers: bool) -> None:
        """As a crash would; it comes back at once, and what died with it has begun before."""
        ...

    def attempts(self, task_id: str, attempt: int) -> list[AttemptFolder]:
        """Where a carrier may have the files of a process."""
        ...

    async def files_of(self, task: Task) -> list[Files]:
        """What a task that has ended has left, for a reader and where it ran."""
        ...

    async def nothing_is_left(self, store: Store, ids: Collection[str], applications: int) -> None:
        """No environment of what has ended, nothing of an application that died; so many live."""
        ...

    def leave(self) -> None:
        """Its carriers go, and nothing stays behind."""
        ...

    def abandon(self) -> None:
        """After a failure: end what there is, whatever it is."""
        ...

    def said(self) -> str:
        """What those who carry out the work have said."""
        ...


NewGround = Callable[[], Ground]


class HomeGround:
    """One machine."""

    has_guardian = True
    has_database = False
    carries_tools = False  # it runs them in processes of their own
    sees_deaths = True

    def __init__(self, home: Path) -> None:
        self.address = str(home)
        self.folder = home.parent / f"{home.name}-marks"
        self.homes = [home]
        self._home = home

    def environment(self) -> dict[str, str]:
        return {}

    def carrier(self, number: int) -> int | None:
        return keeper_of(self._home)

    def kill_carrier(self, number: int) -> None:
        if keeper := keeper_of(self._home):
            kill(keeper)

    def kill_carriers(self) -> None:
        kill_all_of_ours(self._home)

    def kill_guardian(self) -> None:
        kill(*guardians_of(self._home))

    def kill_database(self, *, with_carriers: bool) -> None:
        raise NotImplementedError

    def attempts(self, task_id: str, attempt: int) -> list[AttemptFolder]:
        return [Home(self._home).attempt(task_id, attempt)]

    async def files_of(self, task: Task) -> list[Files]:
        paths = task.document()["paths"]
        return [(paths["log"], paths["result"])]

    async def nothing_is_left(self, store: Store, ids: Collection[str], applications: int) -> None:
        home = Home(self._home)
        call_keeper(home)

        def launches() -> list[str]:
            return [piece.task for piece in handover.pieces(home) if piece.task in ids]

        await wait_until_async(
            lambda: not launches(),
            timeout=TIDY_S,
            message=lambda: f"launches are left: {launches()}",
        )

        async def only_the_living() -> bool:
            return len(await store.workers()) <= applications

        await wait_until_async(only_the_living, timeout=TIDY_S, message="dead workers are left")

    def leave(self) -> None:
        def remaining() -> list[leftovers.Leftover]:
            kill_all_of_ours(self._home)  # again: one that was just being started escapes a look
            return leftovers.processes_of(self._home)

        wait_until(lambda: not remaining(), timeout=20, message=lambda: f"are left: {remaining()}")

    def abandon(self) -> None:
        kill_all_of_ours(self._home)
        wait_until(lambda: not leftovers.end_once(self._home), message="cannot be ended")

    def said(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return Path(Home(self._home).keeper_log).read_text()
        return ""


_JOBS = """
    SELECT job.id, job.status, job.args FROM backburner.procrastinate_jobs job
    LEFT JOIN backburner.task ON task.id = job.args ->> 'task'
    WHERE job.status = 'todo'
       OR (job.status = 'doing' AND NOT (%s AND task.finished_at IS NOT NULL))
"""
"""What the engine has left. That it is done with a job need not be on disk: of what a crash took of
that, others see after a silence that nobody waits for here."""


class SharedGround:
    """Four machines and a database. A machine that is killed comes back, as its supervisor sees to

    it, and goes on with what it had. Each application is on a machine of its own too.
    """

    has_guardian = False  # a supervisor is nothing of ours
    has_database = True
    carries_tools = True
    # Of what an application had that is not heard of any more, and was asked to stop, nobody knows
    # whether it did: it is orphaned then, where a home, which sees who lives, has it canceled.
    sees_deaths = False

    def __init__(self, server: Server, new_home: Callable[[], Path]) -> None:
        self._server = server
        self._crashed = False
        self._new_home = new_home
        self.address = server.create()
        self.homes = [new_home() for _ in range(WORKERS)]
        self.folder = self.homes[0].parent / f"{self.homes[0].name}-marks"
        options = ("--dead-after", str(NEVER_S), "--tools", WORK)
        self._workers = [WorkerProcess(self.address, home, *options) for home in self.homes]

    def environment(self) -> dict[str, str]:
        self.homes.append(self._new_home())
        return {"BACKBURNER_HOME": str(self.homes[-1])}

    def carrier(self, number: int) -> int | None:
        return self._worker(number).process.pid

    def _worker(self, number: int) -> WorkerProcess:
        return self._workers[number % len(self._workers)]

    def kill_carrier(self, number: int) -> None:
        self._worker(number).kill()
        self._worker(number).begin()

    def kill_carriers(self) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.begin()

    def kill_guardian(self) -> None:
        raise NotImplementedError

    def kill_database(self, *, with_carriers: bool) -> None:
        """What `pg_ctl stop -m immediate` does."""
        self._crashed = True
        self._server.stop(signal.SIGQUIT)
        if with_carriers:
            self.kill_carriers()  # they begin while there is no database
        self._server.start()

    def attempts(self, task_id: str, attempt: int) -> list[AttemptFolder]:
        return [Home(worker.home).attempt(task_id, attempt) for worker in self._workers]

    async def files_of(self, task: Task) -> list[Files]:
        """A reader's copies, and those of the worker that ran it.

        A killed application may have left a result that it could not put on record: nobody has its
        machine, so that is not looked at.
        """
        await task.output()
        document = task.document()
        log, result = document["paths"]["log"], document["paths"]["result"]
        assert log is not None, (task.record, "there is no output.log")
        assert result is not None, (task.record, "there is no result.json")
        folders = self.attempts(task.id, task.record.attempt)
        there = [(each.log, each.result) for each in folders if Path(each.result).exists()]
        of_process = task.record.kind in (Kind.SHELL, Kind.PYTHON)
        assert there or not of_process or task.record.started_at is None, task.record
        return [(log, result), *(there if of_process else [])]

    async def nothing_is_left(self, store: Store, ids: Collection[str], applications: int) -> None:
        """Nor has any worker ended but by our hand."""
        for worker in self._workers:
            await asyncio.to_thread(
                worker.until_ready
            )  # else our application would not be heard of
        with psycopg.connect(self.address, autocommit=True) as connection:

            def left() -> list[object]:
                # A launch lies apart from its task, which is not to name one any more.
                of_engine = connection.execute(_JOBS, [self._crashed]).fetchall()
                secrets = connection.execute("SELECT name FROM backburner.secret").fetchall()
                return [*of_engine, *secrets]

            await wait_until_async(
                lambda: not left(), timeout=TIDY_S, message=lambda: f"are left: {left()}"
            )
        assert isinstance(store, NodeStore)
        await wait_until_async(
            lambda: self._only_the_living_have_any(store, applications),
            timeout=TIDY_S,
            message="not all live that should, or the dead have something",
        )

    async def _only_the_living_have_any(self, store: NodeStore, applications: int) -> bool:
        nodes = await store.nodes()
        living = sum(each.alive for each in nodes)
        # Each worker, and beside it what carries out its tools.
        return living == 2 * WORKERS + applications and not any(each.has for each in nodes)

    def leave(self) -> None:
        for worker in self._workers:
            worker.leave()
        self._server.drop(self.address)

        def remaining() -> list[leftovers.Leftover]:
            return [
                each for worker in self._workers for each in leftovers.processes_of(worker.home)
            ]

        wait_until(lambda: not remaining(), timeout=20, message=lambda: f"are left: {remaining()}")

    def abandon(self) -> None:
        for worker in self._workers:
            worker.kill()
            wait_until(
                lambda home=worker.home: not leftovers.end_once(home), message="cannot be ended"
            )

    def said(self) -> str:
        return "\n".join(f"{worker.home.name}: {worker.said()}" for worker in self._workers)
