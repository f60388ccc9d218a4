"""What a call in a process of its own has at hand."""

import os
from pathlib import Path

from backburner.model.home import AttemptFolder, Home
from backburner.work.child.sink import ReportSink
from backburner.work.tools.context import Context
from backburner.work.tools.own_folder import recognised


def context_of(folder: AttemptFolder) -> Context:
    """The context of the task that this process carries out."""
    task = os.environ.get("BACKBURNER_TASK_ID")
    place = os.environ.get("BACKBURNER_FOLDER") or os.getcwd()
    home = os.environ.get("BACKBURNER_HOME")
    if home is not None:
        place = recognised(place, Home(Path(home)).sessions)
    return Context(ReportSink(folder), task=task, folder=place)
