"""Tools and agents that other machines have: known by what the record says of them.

A program that has none of them can ask for them by name; their arguments are checked here as far as
their schema goes, and once more where they are carried out.
"""

from collections.abc import Mapping
from typing import Any

from backburner.model.node import Offer
from backburner.store.postgres.nodes import Nodes
from backburner.work.tools.registry import Registry
from backburner.work.tools.tool import Tool, tool_elsewhere


class Elsewhere:
    """As of the last look."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.tools: Mapping[str, Tool] = {}
        self.agents: frozenset[str] = frozenset()
        self._documents: Mapping[str, Mapping[str, Any]] = {}

    async def look(self) -> None:
        """What there is now."""
        offers = await self._nodes.offers()
        documents = {each.name: each.document for each in offers if each.kind == "tool"}
        self.tools = {
            name: self.tools[name]
            if self._documents.get(name) == document
            else tool_elsewhere(document)
            for name, document in documents.items()
        }
        self._documents = documents
        self.agents = frozenset(each.name for each in offers if each.kind == "agent")

    def beside(self, registry: Registry) -> Registry:
        """The tools of this application, and those that it has not."""
        both = Registry([tool for tool in registry if tool.function is not None])
        for tool in (*self.tools.values(), *registry):
            if tool.name not in both:
                both.register(tool)
        return both


def offer_of(tool: Tool) -> Offer:
    """What others have to know to ask for it."""
    return Offer("tool", tool.name, tool.document())
