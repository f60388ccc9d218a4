"""Starts tasks under given ids with an environment of its own, and says what came of each.

    python -m tests.runtime.starter HOME SESSION NAME LINE EXPLICIT ID…

Waits for a line on standard input, so that several can begin together. NAME is put into the
variable WHO: inherited by the job, or, where EXPLICIT is 1, given with the start.
"""

import asyncio
import os
import sys

from backburner import Backburner, BackburnerError


async def main(home: str, session: str, name: str, line: str, explicit: str, *ids: str) -> None:
    """One answer for each id: `started`, or the code of the refusal."""
    given = {"WHO": name} if explicit == "1" else None
    if given is None:
        os.environ["WHO"] = name
    async with Backburner.open(home) as bb:
        print("ready", flush=True)
        sys.stdin.readline()
        for task_id in ids:
            try:
                await bb.session(session).run(line, id=task_id, env=given)
                print("started", flush=True)
            except BackburnerError as error:
                print(error.code, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
