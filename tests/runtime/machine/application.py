"""An application in a process of its own, which does what it is told, and can be killed.

    python -m tests.runtime.machine.application HOME

HOME is a folder or the address of a database.

Reads commands, each a line of JSON, and answers each with one.
"""

import asyncio
import json
import os
import sys
from typing import Any

from backburner import Backburner, LimitReached
from backburner.model import clock
from tests.runtime.machine.registering import opened


async def main(address: str) -> None:
    """Obey until the commands end."""
    answers = os.dup(1)  # what tools print is captured elsewhere
    async with opened(address) as bb:
        os.write(answers, b'"ready"\n')
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer = await obey(bb, json.loads(line))
            os.write(answers, json.dumps(answer).encode() + b"\n")


async def obey(bb: Backburner, command: dict[str, Any]) -> str | None:
    """The id of a task, where the command has made one."""
    session = bb.session(command["session"])
    tool, arguments, options = command["tool"], command["arguments"], command["options"]
    try:
        match command["do"]:
            case "spawn":
                return (await session.spawn(tool, arguments, **options)).id
            case "ask":
                return (await session.ask(json.dumps(arguments), agent=tool, **options)).id
            case "park":
                return (await session.invoke(tool, arguments, budget=0.01)).task.id
            case _:
                set_clock(command["by"])
    except LimitReached:
        pass
    return None


_true = clock.now


def set_clock(by_s: float) -> None:
    """The wall clock of this process is so many seconds ahead."""
    clock.now = lambda: _true() + round(by_s * clock.SECOND)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
