"""`/schedule`: prompts by the clock, fired by the keeper, told in the chat that planned them."""

from datetime import datetime
from typing import TYPE_CHECKING

from backburner.gateway.desk import Request
from backburner.gateway.talking import BACKGROUND
from backburner.model.clock import SECOND
from backburner.model.errors import UsageError
from backburner.model.schedule import ScheduleState
from backburner.model.task import preview
from backburner.runtime.schedules.calendar import zone_of
from backburner.work.log.fold import strip_controls

if TYPE_CHECKING:
    from backburner.app import Schedule

_CRON_FIELDS = 5
_ENDS = {"stop", "rm", "cancel"}
_HOW = "write /schedule 0 9 * * 1-5 PROMPT, or /schedule at 2026-12-24T18:00 PROMPT"


async def schedule(request: Request) -> None:
    """Plan, list or end."""
    words = request.arguments.split()
    if not words:
        await _list(request)
    elif words[0].lower() in _ENDS and len(words) == 2:  # noqa: PLR2004 - the word and an id
        found = await request.session.find_schedule(words[1])
        await found.cancel()
        await request.reply(f"Ended: {_line(found)}")
    else:
        zone = request.desk.zone
        when, prompt = _planned(request.arguments, zone)
        session = request.session
        agent = request.desk.talking.agents.named(BACKGROUND, session)
        planned = await session.schedule(
            when,
            {"ask": prompt, "agent": agent},
            tz=zone,
            title=preview(prompt),
            id=_own_id(request),
        )
        await request.reply(f"Planned: {_line(planned)}")


def _planned(text: str, zone: str) -> tuple[str | datetime, str]:
    words = text.split()
    if words[0].lower() == "at" and len(words) > 2:  # noqa: PLR2004 - at TIME PROMPT
        return _moment(words[1], zone), text.split(maxsplit=2)[2]
    parts = text.split(maxsplit=_CRON_FIELDS)
    if len(parts) <= _CRON_FIELDS:
        raise UsageError("a schedule needs a time and a prompt", remedy=_HOW)
    return " ".join(parts[:_CRON_FIELDS]), parts[_CRON_FIELDS]


def _moment(text: str, zone: str) -> datetime:
    """A time that says no zone is one of the clocks of this gateway."""
    try:
        moment = datetime.fromisoformat(text) if "T" in text.upper() else None
    except ValueError:
        moment = None
    if moment is None:
        raise UsageError(f"{text[:40]!r} is no time", remedy=_HOW)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(zone))


def _own_id(request: Request) -> str:
    """The same when it is taken up again after a crash."""
    return request.task_id.replace("bg_", "sc_", 1)


async def _list(request: Request) -> None:
    states = [state for state in ScheduleState if not state.ended]
    found = await request.session.schedules(states=states)
    if not found:
        await request.reply(f"Nothing is planned in this chat: {_HOW}")
        return
    await request.reply("\n".join(map(_line, found)))


def _line(planned: "Schedule") -> str:
    record = planned.record
    title = preview(strip_controls(record.title))
    due = ""
    if record.next_at is not None:
        moment = datetime.fromtimestamp(record.next_at // SECOND, zone_of(record.zone))
        due = f", next at {moment:%Y-%m-%d %H:%M} {record.zone}"
    return f'{planned.id} "{title}" {record.state}{due}'
