"""The public handles: Backburner, Session, Task, Signal. They compose what is below, no more."""

from backburner.app.home import Backburner, settings_from_environment
from backburner.app.session import Session
from backburner.app.signal import Signal
from backburner.app.task import Task

__all__ = ["Backburner", "Session", "Signal", "Task", "settings_from_environment"]
