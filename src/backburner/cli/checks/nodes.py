"""The workers of a record that many machines share, and what waits for none of them."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from backburner.cli.checks.finding import Finding, Level, so_many
from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.node import NodeKind, name_of_worker
from backburner.model.order import NO_QUEUE

if TYPE_CHECKING:
    from backburner.model.node import SeenNode
    from backburner.store.postgres.checkup import Checkup, Line, Server

_SHOWN = 5
"""Of each sort, by name."""

_SKEW_S = 1.0
"""Between two clocks: times that are shown beside each other would mislead."""


def examine_nodes(look: "Checkup", server: "Server") -> Iterator[Finding]:
    """Who is there, who was, and whether they fit what waits."""
    nodes = look.nodes()
    waiting, running = look.active()
    lines = look.lines()
    yield Finding("tasks", Level.OK, f"{waiting:,} wait, {running:,} run")
    yield _workers(nodes, lines)
    yield _silent(nodes)
    yield _clocks(server, nodes)
    yield _lines(lines, _unknown_queues(nodes, look.queues()))


def _workers(nodes: "list[SeenNode]", lines: "list[Line]") -> Finding:
    alive = [each for each in nodes if each.alive and each.node.kind is NodeKind.WORKER]
    taking = [each for each in alive if not each.node.draining]
    applications = len({name_of_worker(each.node.id) for each in nodes if each.alive}) - len(alive)
    beside = f"; {so_many(applications, 'application')} beside" if applications else ""
    if taking:
        places = sum(each.node.places for each in taking)
        has = sum(each.has for each in taking)
        machines = len({each.node.machine for each in taking})
        return Finding(
            "workers",
            Level.OK,
            f"{len(taking)} on {so_many(machines, 'machine')}, {has:,} of {places:,} places taken"
            f"{beside}",
        )
    waiting = sum(line.tasks for line in lines)
    return Finding(
        "workers",
        Level.FAIL if waiting else Level.WARN,
        "none takes on tasks" + (f", and {waiting:,} wait" if waiting else "") + beside,
        "backburner worker --database …, on a machine that is to carry them out",
        "what is started waits until one comes",
    )


def _silent(nodes: "list[SeenNode]") -> Finding:
    silent = [each for each in nodes if not (each.alive or each.left)]
    if not silent:
        return Finding("silent workers", Level.OK, "none")
    # A worker and what carries out its tools are one program, which somebody has to start again.
    programs: dict[str, SeenNode] = {}
    for each in sorted(silent, key=lambda each: each.silent_for_s):
        programs.setdefault(name_of_worker(each.node.id), each)
    shown = ", ".join(
        f"{name} on {each.node.machine or 'an unknown machine'}"
        f" for {format_duration(each.silent_for_s)}"
        for name, each in list(programs.items())[:_SHOWN]
    )
    if len(programs) > _SHOWN:
        shown += f" and {len(programs) - _SHOWN:,} more"
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


def _unknown_queues(nodes: "list[SeenNode]", known: Collection[str]) -> list[str]:
    """Those that workers take from and that nobody has made."""
    taken = {name for each in nodes if each.alive for name in each.node.queues}
    return sorted(taken.difference(known, (NO_QUEUE,)))


def _lines(lines: "list[Line]", unknown: list[str]) -> Finding:
    if not lines and unknown:
        return Finding(
            "queues",
            Level.WARN,
            f"workers take from what is not there: {', '.join(unknown)}",
            "backburner queue set NAME --width 2 makes one, if the name is right",
            "nothing can be started in a queue that is not there",
        )
    if not lines:
        return Finding("queues", Level.OK, "everything that waits has a worker that takes it")
    shown = ", ".join(f"{line.name} ({line.tasks:,})" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        shown += f" and {len(lines) - _SHOWN:,} more"
    if unknown:
        shown += f"; and workers take from what is not there: {', '.join(unknown)}"
    return Finding(
        "queues",
        Level.WARN,
        f"no worker takes: {shown}",
        "backburner worker --queue NAME, or --tools for tools, on a machine that can do it",
        "these tasks wait until one comes",
    )


def _clocks(server: "Server", nodes: "list[SeenNode]") -> Finding:
    """All is decided by the database's clock; how long ago it was, each machine says by its own."""
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
        "it shows wrongly how long ago something was, and how long something takes",
    )
