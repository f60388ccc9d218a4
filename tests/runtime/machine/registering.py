"""An application of the machine: the tools of `work`, and one that no other process can import."""

import json

from backburner import AgentRequest, Backburner
from tests.runtime.machine import work


def opened(address: str) -> Backburner:
    """A Backburner with the tools of the machine, not entered yet."""
    bb = Backburner.open(address)
    bb.registry.add_module(work)

    @bb.tool(background=True, idempotent=True)
    async def passes_here(folder: str, mark: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Goes on when it may, and may run twice, where somebody has it."""
        work.begin(folder, mark)
        await work.until_open(folder, mark)
        return mark

    bb.agent("minding", minding)
    return bb


async def minding(request: AgentRequest) -> str:
    """An agent with work of its own, which ends with it."""
    given = json.loads(request.prompt)
    work.begin(given["folder"], given["mark"])
    await request.session.run(f"sleep {given['seconds']}")
    await work.until_open(given["folder"], given["mark"])
    return given["mark"]
