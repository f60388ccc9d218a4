"""Makes schedules as fast as it can, and says what came of each.

    python -m tests.runtime.schedules.adder HOME SESSION COUNT [ID]

Waits for a line on standard input, so that several can begin together.
"""

import asyncio
import sys

from backburner import Backburner, BackburnerError


async def main(home: str, session: str, count: str, schedule_id: str | None = None) -> None:
    """One answer for each: its id, or the code of the refusal."""
    async with Backburner.open(home) as bb:
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(int(count)):
            try:
                made = await bb.session(session).schedule("0 0 1 1 *", "true", id=schedule_id)
                print(made.id, flush=True)
            except BackburnerError as error:
                print(error.code, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
