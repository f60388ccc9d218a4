"""An application of a shared record, as a process: starts what it is told, and says the ids.

Its standard input has a line of JSON for each: a session, a tool, its arguments. It answers with a
line each: the id, or the code of the error. It leaves in order when its input ends.
"""

import asyncio
import json
import sys

from backburner import Backburner, BackburnerError
from backburner.app.tool_modules import take_in


async def main(address: str) -> None:
    bb = Backburner.open(address)
    take_in(bb, "tests.nodes.shop")
    async with bb:
        await bb.runs.begin()
        print("open", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await asyncio.gather(*(start(bb, *each) for each in json.loads(line)))
            print("done", flush=True)


async def start(bb: Backburner, session: str, name: str, arguments: dict[str, str]) -> None:
    try:
        task = await bb.session(session).spawn(name, arguments, max_runtime=None)
    except BackburnerError as error:
        print(error.code, flush=True)
    else:
        print(task.id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
