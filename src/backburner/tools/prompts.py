"""Texts for models: what to make of background work, ready for a system prompt."""

from backburner.model.errors import UsageError

_TOLD = "You are told when it ends, by itself and once, also after a restart."

_NO_POLLING = (
    f"{_TOLD} Until then go on with something else or end your turn: never poll, never sleep."
)

PARKED = (
    "A tool call that takes longer than its time budget is not cut off. It is parked: you get"
    ' {"type": "background", "tool", "timeout_seconds", "background_id", "message"} in the place'
    " of its result, and the call goes on. That is no error, and the call must not be made again:"
    f" it would run twice. {_TOLD} To get its result, or to wait for it, call"
    " check_background_tool with the background_id; one call waits for up to 540 seconds, so do"
    " not call it in a loop. Reading a result does not use it up. cancel=true ends the call; if it"
    " ended just before, you get its result all the same. If you have lost an id, list=true shows"
    " every parked call of this session."
)
"""D10: the life of a parked call."""

STARTED = (
    "{id} is running in the background. Do not poll: you are told when it ends. When the user asks"
    " about it, call {tool} yourself, and never print tool syntax at the user."
)
"""A1: the reply to a start."""

_NOTES = {
    "manage_bg_jobs": (
        "A shell block whose first line is #!bg runs in the background and returns at once with"
        f" the id of its job. {_NO_POLLING} When the user asks about a job, call manage_bg_jobs"
        " yourself (list, output, kill), and never print tool syntax at the user."
    ),
    "bg_task": (
        f"Long work runs as background tasks. {_NO_POLLING} BgTaskOutput reads what a task has"
        " printed, and with block=true waits for its end; BgTaskStop ends it; BgTaskList finds an"
        " id that you have lost."
    ),
    "check_background_tool": PARKED,
    "spawn_background": (
        "spawn_background starts a tool that takes long, now or by a schedule, and returns at once"
        f" with its run_id. {_NO_POLLING} Its result and its log are in the files that the reply"
        " names."
    ),
}


def note(dialect: str) -> str:
    """What a model has to know that has the tools of this dialect, for its system prompt."""
    if dialect not in _NOTES:
        raise UsageError(f"there is no dialect {dialect!r}", remedy=f"use {', '.join(_NOTES)}")
    return _NOTES[dialect]
