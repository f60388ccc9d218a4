"""The kinds of work that the machine starts, and how each may end by itself."""

import sys
from dataclasses import dataclass, field
from typing import Any, Literal

from backburner import ErrorKind, Kind, State
from backburner.model.worker import ATTEMPTS_MAX

ANSWER = "7"
MESSAGE = "hello"

End = tuple[State, ErrorKind | None]
Need = Literal["gate", "answer", "message"]

WELL: End = (State.SUCCEEDED, None)
EXIT: End = (State.FAILED, ErrorKind.EXIT)
ERROR: End = (State.FAILED, ErrorKind.ERROR)
TIMEOUT: End = (State.FAILED, ErrorKind.TIMEOUT)
ORPHANED: End = (State.FAILED, ErrorKind.ORPHANED)
KILLED: End = (State.FAILED, ErrorKind.KILLED)
SPAWN: End = (State.FAILED, ErrorKind.SPAWN)
CANCELED: End = (State.CANCELED, None)

WORK = "tests.runtime.machine.work"
_ASK = f"{sys.executable} -m backburner.cli ask --schema '{{\"type\": \"integer\"}}' 'how many?'"
_SLEEP = "sleep $NAP & env -i setsid sleep $NAP & wait"


@dataclass(frozen=True, slots=True, repr=False)
class Behaviour:
    """What a task does after it has left its mark."""

    name: str
    kind: Kind
    end: End | None = None
    """By itself; None: somebody has to stop it."""
    need: Need | None = None
    """What it does not end by itself without."""
    repeatable: bool = False
    """Taken up again when the application that carries it out is gone."""
    line: str = ""
    runs: int = 1
    """How often it runs, where nothing dies."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])

    naps: bool = False
    """Starts a process that would go on for an hour."""

    @property
    def in_application(self) -> bool:
        """Whether an application carries it out in itself."""
        return self.kind in (Kind.TOOL, Kind.AGENT)

    @property
    def most_runs(self) -> int:
        """How often it may run, whatever dies."""
        return ATTEMPTS_MAX if self.repeatable else self.runs

    def __repr__(self) -> str:
        return self.name

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.name)


def _shell(name: str, line: str, end: End | None, need: Need | None = None, **more: Any) -> Any:
    return Behaviour(name, Kind.SHELL, end, need, line=line, **more)


def _tool(name: str, end: End | None, need: Need | None = None, **more: Any) -> Behaviour:
    return Behaviour(name, Kind.TOOL, end, need, **more)


SHELL: list[Behaviour] = [
    _shell("exit-0", "exit 0", WELL),
    _shell("exit-3", "exit 3", EXIT),
    _shell("gated", "until [ -e $GO ]; do sleep 0.05; done; echo passed", WELL, "gate"),
    _shell("asking", f'answer=$({_ASK}) && echo "got $answer"', WELL, "answer"),
    _shell("sleeping", _SLEEP, None),
    _shell("stubborn", "trap '' TERM; sleep $NAP & wait; wait", None),
    _shell("too-long", "sleep $NAP", TIMEOUT, options={"max_runtime": 0.4}),
    _shell("again", "[ $(wc -l <$RAN) -ge 2 ]", WELL, runs=2, options={"retries": 1}),
]

PYTHON: list[Behaviour] = [
    Behaviour("returns", Kind.PYTHON, WELL),
    Behaviour("raises", Kind.PYTHON, ERROR),
    Behaviour("passes", Kind.PYTHON, WELL, "gate"),
    Behaviour("sleeps", Kind.PYTHON, None, naps=True),
]

TOOLS: list[Behaviour] = [
    _tool("gives", WELL),
    _tool("breaks", ERROR),
    _tool("says_no", ERROR),
    _tool("waits", None),
    _tool("dawdles", None),
    _tool("goes_on", None),
    _tool("waits", TIMEOUT, options={"max_runtime": 0.2}),
    _tool("passes_once", WELL, "gate"),
    _tool("passes_again", WELL, "gate", repeatable=True),
    _tool("passes_here", WELL, "gate", repeatable=True),
    _tool("passes_with_secret", WELL, "gate", arguments={"api_key": "open sesame"}),
    _tool("asks", WELL, "answer"),
    _tool("asks_again", WELL, "answer", repeatable=True),
    _tool("hears", WELL, "message"),
]

AGENTS: list[Behaviour] = [Behaviour("minding", Kind.AGENT, WELL, "gate", naps=True)]

PARKING: list[Behaviour] = [each for each in TOOLS if each.need and not each.options]
"""Those that outlive any budget."""
