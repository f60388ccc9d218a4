"""An application with an agent that has started a job, and waits; to be killed.

python -m tests.runtime.orphaning HOME SESSION
"""

import asyncio
import os
import sys

from backburner import AgentRequest, Backburner, Context
from tests.faults.victims import unique_seconds


async def waiting(request: AgentRequest, context: Context) -> str:
    """Start a job and, for the outer one, an agent like itself; then wait for ever."""
    await request.session.run(f"sleep {unique_seconds()}")
    if request.prompt == "outer":
        await request.session.ask("inner", agent="waiting")
    else:
        os.write(1, b"all there\n")  # what is printed goes to the log of the task
    await asyncio.Event().wait()
    return ""


async def main(home: str, session: str) -> None:
    """Says when everything runs."""
    async with Backburner.open(home) as bb:
        bb.agent("waiting", waiting)
        await bb.session(session).ask("outer", agent="waiting")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
