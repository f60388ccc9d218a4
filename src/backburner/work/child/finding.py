"""From a reference to the thing itself: `package.module:function`."""

import importlib
from collections.abc import Callable
from typing import Any

from backburner.model.errors import UsageError


class CannotBeFound(Exception):
    """There is no such thing, or its module cannot be imported; the cause says more."""


def check_reference(reference: str) -> tuple[str, str]:
    """The module and the name in it. UsageError where it is written in another way."""
    module, colon, name = reference.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise UsageError(
            f"{reference[:200]!r} does not name a function",
            remedy="write package.module:function",
        )
    if module == "__main__":
        raise UsageError(
            "another process cannot import what the main program defines",
            remedy="put the function into a module, and write module:function",
        )
    return module, name


def find(reference: str) -> Callable[..., Any]:
    """The function that this names. CannotBeFound."""
    module, name = check_reference(reference)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise CannotBeFound(f"there is no module {error.name!r}") from None
        raise CannotBeFound(_import_failed(module, error)) from error
    except (Exception, SystemExit) as error:
        raise CannotBeFound(_import_failed(module, error)) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CannotBeFound(f"module {module!r} has no function {name!r}") from None
    if not callable(found):
        raise CannotBeFound(f"{reference} is not a function")
    return found


def _import_failed(module: str, error: BaseException) -> str:
    return f"module {module!r} cannot be imported: {type(error).__name__}: {error}"
