"""Tools and agents that other machines have: known by what the record says of them.

A program that has none of them can ask for them by name; their arguments are checked here as far as
their schema goes, and once more where they are carried out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from backburner.model.errors import LimitReached
from backburner.model.limits import ATTACHMENT_ELSEWHERE_MAX_BYTES
from backburner.model.node import Offer
from backburner.model.task import NewTask, Task
from backburner.store.news import Subject, about
from backburner.store.postgres.attachments import Attached
from backburner.store.postgres.node import NodeStore
from backburner.work.agents.attachments import Attachment
from backburner.work.tools.registry import Registry
from backburner.work.tools.tool import Tool, tool_elsewhere


class Elsewhere:
    """As of the last look."""

    def __init__(self, nodes: NodeStore) -> None:
        self._nodes = nodes
        self._stale = True
        nodes.on_change(self._changed, about(Subject.OFFERS))
        self.tools: Mapping[str, Tool] = {}
        self.agents: Mapping[str, Mapping[str, Any]] = {}
        """Their documents, by name."""
        self._documents: Mapping[str, Mapping[str, Any]] = {}

    def _changed(self) -> None:
        self._stale = True

    async def look_for(self, tool: str) -> Tool | None:
        """One that others have.

        The record is asked where that has changed, or does not have it: it may just have come.
        """
        if self._stale or tool not in self.tools:
            await self.look()
        return self.tools.get(tool)

    async def look(self) -> None:
        """What there is now."""
        self._stale = False
        try:
            offers = await self._nodes.offers()
        except BaseException:
            self._stale = True
            raise
        documents = {each.name: each.document for each in offers if each.kind == "tool"}
        self.tools = {
            name: self.tools[name]
            if self._documents.get(name) == document
            else tool_elsewhere(document)
            for name, document in documents.items()
        }
        self._documents = documents
        self.agents = {each.name: each.document for each in offers if each.kind == "agent"}

    async def ask(
        self, new: NewTask, attachments: Sequence[Attachment], *, limit: int, detail: str
    ) -> Task:
        """Write a prompt that a machine takes up which has the agent. LimitReached."""
        if sum(len(each.data) for each in attachments) > ATTACHMENT_ELSEWHERE_MAX_BYTES:
            raise LimitReached(
                f"the attachments are larger than {ATTACHMENT_ELSEWHERE_MAX_BYTES // 2**20} MiB, "
                "the limit for an agent on another machine",
                remedy="put them where that machine finds them, and say so in the prompt",
            )
        files = [Attached(each.name, each.media_type, each.data) for each in attachments]
        return await self._nodes.create_with(new, files, limit=limit, detail=detail)

    async def attachments(self, task_id: str) -> tuple[Attachment, ...]:
        """What goes with a prompt that was asked from another machine."""
        files = await self._nodes.attachments(task_id)
        return tuple(Attachment(each.data, each.media_type, each.name) for each in files)

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
