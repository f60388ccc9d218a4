"""The tools and agents of a module, for a worker that carries them out (`--tools MODULE`)."""

import os
import sys
import sysconfig
import traceback
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

_OURS = f"{os.path.dirname(os.path.dirname(__file__))}/"
_PYTHON = f"{sysconfig.get_path('stdlib')}/"
_INSTALLED = ("/site-packages/", "/dist-packages/")

_HOW = "name a module, or package.module:object, with a registry, a tool or a function of it"


def take_in(backburner: Backburner, name: str) -> None:
    """Make what ``name`` has a part of an application. UsageError where there is nothing.

    `package.module` has every function that is a tool, and what its ``register(backburner)`` adds;
    `package.module:object` is a registry, a tool, another Backburner, or such a function.
    """
    module_name, colon, path = name.partition(":")
    if not module_name:
        raise UsageError(f"--tools: {name!r} names no module", remedy=_HOW)
    if colon and not path:
        raise UsageError(f"--tools: {name!r} names no object after the colon", remedy=_HOW)
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
    except (Exception, SystemExit) as error:  # a module runs when it is loaded, and may do anything
        raise UsageError(f"{name} cannot be imported: {_told(error)}", remedy=_HOW) from error


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
    except UsageError as error:
        where = _where(error)
        text = f"{error.message} ({where})" if where else error.message
        raise UsageError(text, remedy=error.remedy) from error
    except (Exception, SystemExit) as error:  # whatever an application does there
        text = f"{name} failed: {_told(error)}"
        raise UsageError(text, remedy="see why, and start it again") from error


def _told(error: BaseException) -> str:
    """What it was, and where in the application."""
    where = _where(error)
    return f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")


def _where(error: BaseException) -> str | None:
    """The innermost line of the application: errors also come through what it has called."""
    named = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    theirs = [each for each in named if not each[0].startswith(("<frozen ", _OURS))]
    own = [each for each in theirs if not _is_installed(each[0]) and not _is_python(each[0])]
    for file, line in reversed(own or [each for each in theirs if _is_installed(each[0])]):
        return f"{file}, line {line}"
    return None


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)


def _is_python(file: str) -> bool:
    return file.startswith(_PYTHON)
