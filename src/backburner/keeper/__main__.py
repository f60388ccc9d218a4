"""The keeper as a process: `python -m backburner.keeper HOME [LINE]`; see `keeper.py`."""

import asyncio
import sys
from pathlib import Path

from backburner.keeper.keeper import run

if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))  # noqa: PLR2004
