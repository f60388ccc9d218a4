"""A record that many machines share: its database, the workers, and what waits for none of them."""

import os
import time
from collections.abc import Iterator
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

from backburner.cli.checks.finding import Finding, Level, so_many
from backburner.cli.checks.nodes import examine_nodes
from backburner.cli.checks.record import shape_finding
from backburner.cli.place import Place
from backburner.model.clock import format_duration
from backburner.model.database import without_password
from backburner.model.errors import BackburnerError
from backburner.model.limits import Settings
from backburner.store.postgres.footprint import APPLICATION, PROGRAM, WORKER
from backburner.work.log.marks import byte_count

if TYPE_CHECKING:
    from backburner.store.postgres.checkup import Breaches, Checkup, Server, Transaction

_LONG_S = 30.0
"""For a transaction: ours take milliseconds."""
_MUCH_OUTPUT = 10_000_000_000
_NEARLY_ALL = 0.8


def examine_cluster(at: Place) -> Iterator[Finding]:
    """Every check, in the order in which one builds on another."""
    extra = _extra()
    yield extra
    if extra.level is Level.FAIL:
        return
    from backburner.store.postgres.checkup import checkup, newest_format

    try:
        began = time.monotonic()
        with checkup(at.home.address) as look:
            took = time.monotonic() - began
            shape = shape_finding(look.format.number, look.format.oldest, newest_format())
            if shape.level is Level.FAIL:
                yield Finding("database", Level.OK, at.home.shown)
                yield shape
                return
            server = look.server()
            yield _database(at, server, took)
            yield shape
            yield from _looked_at(look, server)
    except BackburnerError as error:
        yield Finding("database", Level.FAIL, f"{at.home.shown}: {error.message}", error.remedy)
        return
    if (pooler := Settings.from_environment().pooler) != "":
        yield _pooler(at, pooler)
    yield _folder(at)
    yield _artifacts()


def _looked_at(look: "Checkup", server: "Server") -> Iterator[Finding]:
    yield from examine_nodes(look, server)
    yield _engine(look.breaches())
    yield _dead_letters(look.dead_letters())
    yield _output(server)
    yield _transactions(look.transactions(_LONG_S))
    yield _connections(server)


def _extra() -> Finding:
    from backburner.runtime.home import check_database_installed

    try:
        check_database_installed()
    except BackburnerError as error:
        return Finding("extra", Level.FAIL, error.message, error.remedy)
    shown = (f"{name} {version_of(name)}" for name in ("psycopg", "procrastinate"))
    return Finding("extra", Level.OK, ", ".join(shown))


def _database(at: Place, server: "Server", took: float) -> Finding:
    text = f"{at.home.shown}: PostgreSQL {server.version.split()[0]}, {byte_count(server.bytes)}"
    if server.why_unwritable is not None:
        why, remedy = server.why_unwritable
        return Finding(
            "database", Level.FAIL, f"{text}, {why}", remedy, "nothing can be started here"
        )
    return Finding("database", Level.OK, f"{text}, connected in {took * 1000:.0f} ms")


def _engine(found: "Breaches") -> Finding:
    if not found.jobs_without_tasks and not found.tasks_without_jobs:
        return Finding("engine", Level.OK, "every task that may start has its job")
    return Finding(
        "engine",
        Level.FAIL,
        f"{found.jobs_without_tasks:,} jobs without tasks,"
        f" {found.tasks_without_jobs:,} tasks without jobs",
        "backburner db check looks at the rest; keep a copy of the database, and report it",
        "a task without its job is never started",
    )


def _dead_letters(count: int) -> Finding:
    if not count:
        return Finding("deliveries", Level.OK, "no dead letters")
    return Finding(
        "deliveries",
        Level.WARN,
        f"{so_many(count, 'signal')} could not be delivered through a channel",
        "backburner signals --failed lists those of a session, --resend KEY sends one again",
        "nobody was told what they say, unless through the inbox",
    )


def _output(server: "Server") -> Finding:
    text = f"{byte_count(server.mirror_bytes)} of output in the record"
    if server.mirror_bytes < _MUCH_OUTPUT:
        return Finding("output", Level.OK, text)
    return Finding(
        "output",
        Level.WARN,
        text,
        "backburner prune --older-than 7d --all-sessions",
        "back-ups take it along",
    )


def _transactions(long: "list[Transaction]") -> Finding:
    if not long:
        return Finding("transactions", Level.OK, f"none is open for {_LONG_S:g} s")
    shown = ", ".join(
        f"{each.program or 'a program'} on {each.machine} (pid {each.pid},"
        f" {format_duration(each.seconds)}{', waits for a lock' if each.waits else ''})"
        for each in long[:5]
    )
    return Finding(
        "transactions",
        Level.WARN,
        f"open for long: {shown}",
        "end it: SELECT pg_terminate_backend(PID)",
        "it may keep writers waiting, and the database from freeing what was deleted",
    )


def _connections(server: "Server") -> Finding:
    text = f"{server.connections:,} of {server.most_connections:,}"
    if server.connections < _NEARLY_ALL * server.most_connections:
        return Finding("connections", Level.OK, text)
    return Finding(
        "connections",
        Level.WARN,
        text,
        f"raise max_connections: a worker takes up to {WORKER}, a server {APPLICATION}, a program"
        f" {PROGRAM}",
        "one more program may not be let in",
    )


def _pooler(at: Place, pooler: str) -> Finding:
    from backburner.store.postgres.pooler import check_pooler

    try:
        check_pooler(at.home.address, pooler)
    except BackburnerError as error:
        return Finding(
            "pooler", Level.FAIL, error.message, error.remedy, "programs and workers do not start"
        )
    return Finding("pooler", Level.OK, f"{without_password(pooler)}, over which all is read")


def _folder(at: Place) -> Finding:
    root = at.home.root
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
    except OSError as error:
        return Finding(
            "folder",
            Level.WARN,
            f"{root}: {error.strerror}",
            "set XDG_STATE_HOME to a folder that can be written to",
            "output of other machines is copied there to be read",
        )
    return Finding("folder", Level.OK, f"{root}, for copies of output")


def _artifacts() -> Finding:
    from backburner.runtime.artifacts import depot_of

    try:
        depot = depot_of(Settings.from_environment())
        is_folder = depot is not None and depot.check_folder()
    except BackburnerError as error:
        return Finding(
            "artifacts",
            Level.FAIL,
            error.message,
            error.remedy,
            "files that tasks add stay on their machine",
        )
    if depot is None:
        return Finding(
            "artifacts",
            Level.OK,
            "stay on the machine of their task: BACKBURNER_ARTIFACTS is unset",
        )
    text = "which can be written to" if is_folder else "which is not tried out here"
    return Finding("artifacts", Level.OK, f"lie in {depot.address}, {text}")
