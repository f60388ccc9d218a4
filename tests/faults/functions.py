"""What the Python tasks of the campaign do, after they have noted that they run."""

import subprocess
from pathlib import Path
from typing import NoReturn

FLOOD_LINES = 40_000


def returns(ran: str, seconds: str) -> str:
    """Gives back what it was given."""
    _note(ran)
    return seconds


def raises(ran: str, seconds: str) -> NoReturn:
    """Fails."""
    _note(ran)
    raise ValueError(seconds)


def sleeps(ran: str, seconds: str) -> None:
    """Somebody has to stop it."""
    _note(ran)
    subprocess.run(["sleep", seconds], check=True)


def floods(ran: str, seconds: str) -> int:
    """Prints more than a log keeps."""
    _note(ran)
    for number in range(FLOOD_LINES):
        print(f"{number} {seconds} {'x' * 40}")
    return FLOOD_LINES


def _note(ran: str) -> None:
    with Path(ran).open("a") as file:
        file.write("ran\n")
