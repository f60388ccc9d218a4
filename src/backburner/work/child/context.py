"""What a call in a process of its own has at hand."""

import os

from backburner.model.home import AttemptFolder
from backburner.work.child.sink import ReportSink
from backburner.work.tools.context import Context


def context_of(folder: AttemptFolder) -> Context:
    """The context of the task that this process carries out."""
    task = os.environ.get("BACKBURNER_TASK_ID")
    return Context(ReportSink(folder), task=task, folder=os.getcwd())
