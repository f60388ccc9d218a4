"""The keeper as a process: `python -m backburner.keeper HOME [LINE] [--stay]`; see `keeper.py`."""

import asyncio
import sys
from pathlib import Path

from backburner.keeper.guardian import STAY
from backburner.keeper.keeper import run

_SWITCH_S = 0.0005
"""How long the writer's thread waits for the interpreter. It has little to do and many wait for it:
a twentieth more jobs a second than with the usual 5 ms."""

if __name__ == "__main__":
    sys.setswitchinterval(_SWITCH_S)
    words = sys.argv[2:]
    line = next((int(word) for word in words if word.isdigit()), None)
    asyncio.run(run(Path(sys.argv[1]), line, stays=STAY in words))
