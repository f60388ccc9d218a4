"""The tools that every agent may have: time, arithmetic, notes, files of its folder, the web.

Loads pydantic and every tool, so it is imported only where they are wanted. The shell, a store of
values and starting more work are not here: those are what a session is given.
"""

from backburner.work.tools.defaults import arithmetic, files, notes, search, weather, web
from backburner.work.tools.registry import Registry


def default_registry() -> Registry:
    """A registry of these tools, to be added to at will."""
    registry = Registry()
    for module in (notes, arithmetic, weather, files, search, web):
        registry.add_module(module)
    return registry
