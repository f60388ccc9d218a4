"""`/schedule`: prompts by the clock, fired by the keeper, told in the chat that planned them."""

from typing import TYPE_CHECKING

from backburner.gateway.desk import Request
from backburner.gateway.talking import BACKGROUND
from backburner.model.clock import rfc3339
from backburner.model.errors import UsageError
from backburner.model.schedule import ScheduleState
from backburner.model.task import preview
from backburner.work.log.fold import strip_controls

if TYPE_CHECKING:
    from backburner.app import Schedule

_CRON_FIELDS = 5
_ENDS = {"stop", "rm", "cancel"}
_HOW = "write /schedule 0 9 * * 1-5 PROMPT, or /schedule at 2026-12-24T18:00:00+01:00 PROMPT"


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
        when, prompt = _planned(request.arguments)
        session = request.session
        agent = request.desk.talking.agents.named(BACKGROUND, session)
        planned = await session.schedule(
            when, {"ask": prompt, "agent": agent}, title=preview(prompt), id=_own_id(request)
        )
        await request.reply(f"Planned: {_line(planned)}")


def _planned(text: str) -> tuple[str, str]:
    words = text.split()
    if words[0].lower() == "at" and len(words) > 2:  # noqa: PLR2004 - at TIME PROMPT
        if "T" not in words[1].upper():
            raise UsageError(f"{words[1][:40]!r} is no time", remedy=_HOW)
        return words[1], text.split(maxsplit=2)[2]
    parts = text.split(maxsplit=_CRON_FIELDS)
    if len(parts) <= _CRON_FIELDS:
        raise UsageError("a schedule needs a time and a prompt", remedy=_HOW)
    return " ".join(parts[:_CRON_FIELDS]), parts[_CRON_FIELDS]


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
    due = (
        f", next at {rfc3339(record.next_at).partition('.')[0]} UTC"
        if record.next_at is not None
        else ""
    )
    return f'{planned.id} "{title}" {record.state}{due}'
