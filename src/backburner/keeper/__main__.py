"""The keeper as a process: `python -m backburner.keeper HOME [LINE]`; see `keeper.py`."""

import asyncio
import sys
from pathlib import Path

from backburner.keeper.keeper import run

_SWITCH_S = 0.0005
"""How long the writer's thread waits for the interpreter. It has little to do and many wait for it:
a twentieth more jobs a second than with the usual 5 ms."""

if __name__ == "__main__":
    sys.setswitchinterval(_SWITCH_S)
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))  # noqa: PLR2004
