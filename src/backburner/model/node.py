"""Nodes: processes on many machines that carry out work of one record."""

from enum import StrEnum
from typing import Any

from backburner.model.values import value


class NodeKind(StrEnum):
    """What a node is."""

    WORKER = "worker"
    """`backburner worker`: a folder, whose processes outlive it."""
    APPLICATION = "application"
    """A program that carries out tools and agents in itself."""


@value
class Node:
    """What one says of itself."""

    id: str
    kind: NodeKind
    machine: str
    pid: int
    queues: tuple[str, ...] = ()
    """Whose processes it carries out."""
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    places: int = 0
    """So much it takes on at once."""
    silent_s: float = 30.0
    """It is dead when it was not heard of for so long."""
    draining: bool = False
    """It takes on nothing more."""


_BESIDE = ".tools"


def name_beside(node_id: str) -> str:
    """Of the application within a worker, which carries out its tools."""
    return node_id + _BESIDE


def name_of_worker(node_id: str) -> str:
    """Of the worker that such an application is part of; else its own."""
    return node_id.removesuffix(_BESIDE)


@value
class SeenNode:
    """One as the record sees it."""

    node: Node
    silent_for_s: float
    """Since it was last heard of."""
    alive: bool
    has: int
    """What it carries out at present."""
    ahead_s: float = 0.0
    """Its clock, of that of the database, when it last said who it is."""
    left: bool = False
    """It went in order, and nothing of it is left to see to."""


PROGRAM = "program"
"""In the document of an agent that is a program of its machine."""


@value
class Offer:
    """A tool or an agent that can be asked for by name."""

    kind: str
    """tool or agent"""
    name: str
    document: dict[str, Any]
    """All of it that a caller has to know."""
