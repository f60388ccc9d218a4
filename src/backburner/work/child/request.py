"""What a child is asked to do. It reads this from its standard input, so that arguments stand in

no command line, no environment and no file.
"""

import json
import os
import sys
from dataclasses import asdict
from typing import Any, Literal

from backburner.model.values import value

PROGRAM = f"{os.path.dirname(os.path.abspath(__file__))}/program.py"
PACKAGES = os.path.abspath(f"{os.path.dirname(PROGRAM)}/../../..")
"""The folder that has our package in it."""

What = Literal["function", "tool"]


@value
class Request:
    """One call."""

    what: What
    reference: str
    """package.module:function"""
    arguments: dict[str, Any]
    path: list[str]
    """Where modules are looked for: as in the process that asked."""

    def to_text(self) -> str:
        """As the child reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str | bytes) -> "Request":
        """The inverse of `to_text`."""
        return cls(**json.loads(text))


def path_of_this_process() -> list[str]:
    """Where this process looks for modules, in a form that holds in any folder."""
    return [os.path.abspath(os.fsdecode(entry)) for entry in sys.path]


def command(reference: str) -> list[str]:
    """What runs a child. The reference is there for people who look at the list of processes."""
    # -P: neither the folder of our program nor the present one is where modules are looked for.
    return [sys.executable or "python3", "-P", PROGRAM, reference]


def is_child(words: list[str]) -> bool:
    """Whether this is the command line of a child."""
    return len(words) > 3 and words[1:3] == ["-P", PROGRAM]  # noqa: PLR2004 - as above


def shown_child(words: list[str]) -> str:
    """A child as a person wants to see it."""
    return f"python {words[3]}"
