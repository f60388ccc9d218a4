"""`backburner.dialects` without `await`, for the sessions of `backburner.sync`."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backburner.model.limits import DEFAULT_MAX_RUNTIME_S
from backburner.sync import Session, Task
from backburner.tools.dialects import bg_task, chat

if TYPE_CHECKING:
    from backburner.tools.seen import Answer


def start_marked(
    session: Session,
    text: str,
    *,
    title: str | None = None,
    max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
    cwd: str | os.PathLike[str] | None = None,
) -> "Answer | None":
    """Start a shell block in the background where its first line is a marker (A1); else None."""
    return session._portal.call(  # pyright: ignore[reportPrivateUsage]
        chat.start_marked(
            session._inner,  # pyright: ignore[reportPrivateUsage]
            text,
            title=title,
            max_runtime=max_runtime,
            cwd=cwd,
        )
    )


def act_on(session: Session, text: str) -> "Answer | None":
    """Do what a short message asks for of background work (A10), or ask back; else None."""
    return session._portal.call(  # pyright: ignore[reportPrivateUsage]
        chat.act_on(session._inner, text)  # pyright: ignore[reportPrivateUsage]
    )


def start_bg_task(
    session: Session, command: str | Sequence[str], *, title: str | None = None
) -> Task:
    """Start a shell job as `bg_task` has them: with its two streams apart (C2)."""
    portal = session._portal  # pyright: ignore[reportPrivateUsage]
    inner = session._inner  # pyright: ignore[reportPrivateUsage]
    return Task(portal, portal.call(bg_task.start(inner, command, title=title)))
