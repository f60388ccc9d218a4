"""The tools and agents of a module, for a worker that carries them out (`--tools MODULE`)."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from backburner.app.home import Backburner
from backburner.model.errors import UsageError
from backburner.model.node import PROGRAM, Offer
from backburner.model.states import Kind
from backburner.model.task import Task
from backburner.runtime.node import Programs
from backburner.work.agents.command import CommandAgent
from backburner.work.process.wrapper import Launch

REGISTER = "register"
"""The function of a module that is given the Backburner to register tools and agents with."""

_HOW = "name a module, or package.module:object, with a registry, a tool or a function of it"


def take_in(backburner: Backburner, name: str) -> None:
    """Make what ``name`` has a part of an application. UsageError where there is nothing.

    `package.module` has every function that is a tool, and what its ``register(backburner)`` adds;
    `package.module:object` is a registry, a tool, another Backburner, or such a function.
    """
    module_name, _, path = name.partition(":")
    module = _imported(module_name)
    if path:
        _take_in_object(backburner, name, _attribute(module, name, path))
        return
    found = bool(backburner.registry.add_module(module))
    register = getattr(module, REGISTER, None)
    if callable(register):
        _call(register, backburner, f"{name}:{REGISTER}")
    elif not found:
        raise UsageError(f"there are no tools in {name}", remedy=_HOW)


def programs_of(backburner: Backburner) -> Programs:
    """Its command-line agents, which are processes of the worker.

    Every owner reads what is offered, and there may be keys in a command line: it is left out.
    """

    def launch(task: Task) -> Launch | None:
        return backburner.agents.launch(task)  # which are there when it is open

    return Programs(
        [
            Offer(Kind.AGENT, name, {"name": name, PROGRAM: True})
            for name, agent in backburner.registered_agents.items()
            if isinstance(agent, CommandAgent)
        ],
        launch,
    )


def _take_in_object(backburner: Backburner, name: str, given: Any) -> None:
    from backburner.work.tools.registry import Registry
    from backburner.work.tools.tool import MARK, Tool

    if isinstance(given, Backburner):
        backburner.take_in(given)
    elif isinstance(given, Registry):
        for tool in given:
            backburner.registry.register(tool)
    elif isinstance(given, Tool) or hasattr(given, MARK):
        backburner.registry.add(given)
    elif callable(given):
        _call(given, backburner, name)
    else:
        raise UsageError(f"{name} is none of tools", remedy=_HOW)


def _imported(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:  # as `python -m` looks there, which a program on the PATH does not
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except Exception as error:  # a module runs when it is loaded, and may raise anything
        text = f"{type(error).__name__}: {error}"
        raise UsageError(f"{name} cannot be imported: {text}", remedy=_HOW) from error


def _attribute(module: ModuleType, name: str, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise UsageError(f"there is no {name}", remedy=_HOW)
    return found


def _call(register: Any, backburner: Backburner, name: str) -> None:
    try:
        register(backburner)
    except UsageError:
        raise
    except Exception as error:  # whatever an application does there
        text = f"{type(error).__name__}: {error}"
        raise UsageError(f"{name} failed: {text}", remedy="see why, and start it again") from error
