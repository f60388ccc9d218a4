"""The workers of a record that many machines share, and what waits for none of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backburner.cli.checks.finding import Finding, Level, so_many
from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.node import NodeKind, name_beside

if TYPE_CHECKING:
    from backburner.model.node import SeenNode
    from backburner.store.postgres.checkup import Checkup, Line, Server

_SKEW_S = 1.0
"""Between two clocks: times that are shown beside each other would mislead."""


def examine_nodes(look: "Checkup", server: "Server") -> Iterator[Finding]:
    """Who is there, who was, and whether they fit what waits."""
    nodes = look.nodes()
    waiting, running = look.active()
    yield Finding("tasks", Level.OK, f"{waiting:,} wait, {running:,} run")
    yield _workers(nodes, waiting)
    yield _silent(nodes)
    yield _clocks(server, nodes)
    yield _lines(look.lines())


def _workers(nodes: "list[SeenNode]", waiting: int) -> Finding:
    alive = [each for each in nodes if each.alive and each.node.kind is NodeKind.WORKER]
    taking = [each for each in alive if not each.node.draining]
    own = {name_beside(each.node.id) for each in alive}
    applications = sum(each.alive and each.node.id not in own for each in nodes) - len(alive)
    beside = f"; {so_many(applications, 'application')} beside" if applications else ""
    if taking:
        places = sum(each.node.places for each in taking)
        has = sum(each.has for each in alive)
        machines = len({each.node.machine for each in taking})
        return Finding(
            "workers",
            Level.OK,
            f"{len(taking)} on {so_many(machines, 'machine')}, {has:,} of {places:,} places taken"
            f"{beside}",
        )
    return Finding(
        "workers",
        Level.FAIL if waiting else Level.WARN,
        "none takes on tasks" + (f", and {waiting:,} wait" if waiting else "") + beside,
        "backburner worker --database …, on a machine that is to carry them out",
        "what is started waits until one comes",
    )


def _silent(nodes: "list[SeenNode]") -> Finding:
    silent = [each for each in nodes if not each.alive]
    if not silent:
        return Finding("silent workers", Level.OK, "none")
    shown = ", ".join(
        f"{each.node.id} on {each.node.machine or 'an unknown machine'}"
        f" for {format_duration(each.silent_for_s)}"
        for each in sorted(silent, key=lambda each: each.silent_for_s)[:5]
    )
    stalled = sum(each.has for each in silent)
    if stalled:
        return Finding(
            "silent workers",
            Level.FAIL if not any(each.alive for each in nodes) else Level.WARN,
            f"{shown}; {so_many(stalled, 'task')} of theirs not seen to yet",
            "start a worker there again, with the same --home: it goes on with its commands",
            "any worker that lives ends them as orphaned, or takes them up again where it may",
        )
    return Finding("silent workers", Level.OK, f"{shown}; nothing of theirs is left")


def _lines(lines: "list[Line]") -> Finding:
    if not lines:
        return Finding("queues", Level.OK, "everything that waits has a worker that takes it")
    shown = ", ".join(f"{line.name} ({line.tasks:,})" for line in lines)
    return Finding(
        "queues",
        Level.WARN,
        f"no worker takes: {shown}",
        "backburner worker --queue NAME, or --tools for tools, on a machine that can do it",
        "these tasks wait until one comes",
    )


def _clocks(server: "Server", nodes: "list[SeenNode]") -> Finding:
    """Leases and deaths go by the database's clock; what is shown, by that of each machine."""
    ahead = {"this machine": (clock.now() - server.now) / clock.SECOND}
    ahead |= {each.node.machine: each.ahead_s for each in nodes if each.alive}
    wrong = {name: by for name, by in ahead.items() if abs(by) > _SKEW_S}
    if not wrong:
        most = max(abs(by) for by in ahead.values())
        return Finding("clocks", Level.OK, f"within {most * 1000:.0f} ms of the database's")
    shown = ", ".join(
        f"{name} is {format_duration(abs(by))} {'ahead' if by > 0 else 'behind'}"
        for name, by in sorted(wrong.items())
    )
    return Finding(
        "clocks",
        Level.WARN,
        shown,
        "let all machines keep the time with NTP",
        "times of tasks and schedules of different machines do not fit each other",
    )
