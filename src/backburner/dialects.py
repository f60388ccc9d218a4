"""Beside `session.toolset(dialect=…)`: what a program needs that speaks one of the dialects.

See docs/dialects.md.
"""

from backburner.tools.dialects import DIALECTS
from backburner.tools.dialects.bg_task import start as start_bg_task
from backburner.tools.dialects.chat import act_on, start_marked
from backburner.tools.dialects.check_background_tool import (
    BackgroundToolList,
    BackgroundToolListEntry,
    BackgroundToolStatus,
)
from backburner.tools.prompts import note

__all__ = [
    "DIALECTS",
    "BackgroundToolList",
    "BackgroundToolListEntry",
    "BackgroundToolStatus",
    "act_on",
    "note",
    "start_bg_task",
    "start_marked",
]
