"""The same Backburner without `await`, for scripts and for frameworks that are not asynchronous.

One door: an event loop in a thread of its own, and every call handed through to it. Safe to call
from several threads. `from backburner.sync import Backburner`.
"""

from backburner.sync.conversation import Following
from backburner.sync.home import Backburner
from backburner.sync.schedule import Schedule
from backburner.sync.session import Session
from backburner.sync.signal import Signal
from backburner.sync.task import Task

__all__ = ["Backburner", "Following", "Schedule", "Session", "Signal", "Task"]
