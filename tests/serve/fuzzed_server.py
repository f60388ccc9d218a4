"""A server that takes any number of requests, for a test that sends many. Prints where it is."""

import asyncio
import json
import sys

from backburner import Backburner
from backburner.serve import Binding, Load, serve


async def main(home: str) -> None:
    backburner = Backburner.open(home)

    @backburner.tool(background=True)
    def noop() -> str:  # pyright: ignore[reportUnusedFunction]  # called by its name
        """Does nothing."""
        return "nothing"

    load = Load(per_second=1e6, burst=10**6, guesses_per_minute=1e6)

    def announce(address: str, _: str) -> None:
        print(json.dumps({"url": address, "token_file": backburner.home.token}), flush=True)

    async with backburner:
        await serve(backburner, Binding(port=0, load=load), announce=announce)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
