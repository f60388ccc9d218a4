"""What an event says in a task's timeline: a few words for each kind."""

from collections.abc import Callable
from typing import Any

from backburner.cli import phrases
from backburner.model import clock
from backburner.model.events import Event, EventKind
from backburner.model.task import EndedFor, Progress
from backburner.work.log.marks import byte_count

Data = dict[str, Any]


def event_text(event: Event) -> str:
    """What there is to say beside the kind of the event."""
    say = _SAYINGS.get(event.kind)
    return say(event.data) if say else ""


def _started(data: Data) -> str:
    return f"on {data['machine']}" if "machine" in data else ""


def _finished(data: Data) -> str:
    error = data.get("error")
    why = error["message"] if error else data.get("summary")
    said = f"{data.get('state', '')}: {why}" if why else data.get("state", "")
    left = data.get("leftovers")
    return f"{said}, {phrases.processes(left)} left behind" if left else said


def _failed_try(data: Data) -> str:
    error = data.get("error") or {"message": ""}
    return f"attempt {data.get('attempt')}: {error['message']}"


def _stop_requested(data: Data) -> str:
    grace = data.get("grace_s")
    return f"with a grace of {clock.format_duration(grace)}" if grace else "by force"


def _ending(data: Data) -> str:
    return "past its maximum run time" if data.get("reason") == EndedFor.TIMEOUT else "on request"


def _leftovers(data: Data) -> str:
    left = data.get("leftovers", 0)
    return f"{phrases.processes(left)} left" if left else data.get("reason", "all ended")


def _artifact(data: Data) -> str:
    return f"{data.get('name')}, {byte_count(data.get('bytes', 0))}"


def _result(data: Data) -> str:
    return byte_count(data["bytes"]) if "bytes" in data else ""


def _progress(data: Data) -> str:
    return phrases.progress(Progress(**data["progress"]))


def _of(name: str) -> Callable[[Data], str]:
    return lambda data: str(data.get(name) or "")


_SAYINGS: dict[EventKind, Callable[[Data], str]] = {
    EventKind.STARTED: _started,
    EventKind.REQUEUED: _of("reason"),
    EventKind.FAILED_TRY: _failed_try,
    EventKind.STOP_REQUESTED: _stop_requested,
    EventKind.ENDING: _ending,
    EventKind.DETAIL: _of("detail"),
    EventKind.PROGRESS: _progress,
    EventKind.READY: _of("text"),
    EventKind.MATCH: _of("text"),
    EventKind.SILENT: _of("text"),
    EventKind.ASKED: _of("text"),
    EventKind.ARTIFACT: _artifact,
    EventKind.RESULT: _result,
    EventKind.LEFTOVERS: _leftovers,
    EventKind.FINISHED: _finished,
}
