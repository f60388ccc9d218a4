"""Taking the tokens of a bot out of the environment, so that no job finds them there.

A job inherits the environment of whoever starts it, and can read that of any process of its user in
`/proc`: so the copy that the kernel shows is blanked too.
"""

import ctypes
import os
import sys

NAMES = (
    "TELEGRAM_BOT_TOKEN",
    "DISCORD_BOT_TOKEN",
    "SLACK_BOT_TOKEN",
    "SLACK_APP_TOKEN",
    "SLACK_SIGNING_SECRET",
)

_ENV_START, _ENV_END = 47, 48
"""Fields of `/proc/self/stat`, counted after the name of the program."""


def taken() -> dict[str, str]:
    """The tokens that are there; from now on nobody else finds them."""
    found = {name: value for name in NAMES if (value := os.environ.pop(name, None)) is not None}
    if found and sys.platform == "linux":
        _blank_for_the_kernel([f"{name}={value}" for name, value in found.items()])
    return found


def _blank_for_the_kernel(lines: list[str]) -> None:
    """In the memory that `/proc/self/environ` is read from: our own, as it was at our start."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    if not start:
        return
    block = ctypes.string_at(start, end - start)
    for line in lines:
        wanted = os.fsencode(line) + b"\0"
        at = 0 if block.startswith(wanted) else block.find(b"\0" + wanted) + 1
        if at or block.startswith(wanted):
            ctypes.memset(start + at, ord("x"), len(wanted) - 1)
