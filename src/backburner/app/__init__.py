"""The public handles. They compose what is below, no more."""

from backburner.app.home import Backburner, settings_from_environment
from backburner.app.schedule import Schedule
from backburner.app.session import Session
from backburner.app.signal import Signal
from backburner.app.task import Task

__all__ = ["Backburner", "Schedule", "Session", "Signal", "Task", "settings_from_environment"]
