"""The tool sets of other systems over the same calls: one page each, which translates."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from backburner.model.errors import UsageError
from backburner.tools.seen import Answer, Offer

if TYPE_CHECKING:
    from backburner.app import Session

DIALECTS = ("manage_bg_jobs", "bg_task", "check_background_tool", "spawn_background")


def offers_of(dialect: str | None, session: "Session | None") -> Sequence[Offer]:
    """The tools of a dialect, or our own. Without a session every call of them is an error."""
    if dialect is None:
        from backburner.tools.canonical import Canonical

        return Canonical(session).offers() if session is not None else []
    if dialect not in DIALECTS:
        raise UsageError(f"there is no dialect {dialect!r}", remedy=f"use {', '.join(DIALECTS)}")
    module = import_module(f"backburner.tools.dialects.{dialect}")
    offers: Callable[[Session | None], Sequence[Offer]] = module.offers
    if session is None:
        return [replace(offer, handler=_without_session) for offer in offers(None)]
    return offers(session)


async def _without_session(given: dict[str, Any]) -> Answer:  # noqa: ARG001 - as of any handler
    raise UsageError("there is no session here", remedy="call it in a session")
