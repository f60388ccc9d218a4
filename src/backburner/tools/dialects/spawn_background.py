"""`spawn_background`: a tool that has opted in, started now or by a schedule (E2 to E4, E9)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model.errors import InvalidArguments
from backburner.model.policy import Action
from backburner.runtime.schedules.service import read_when
from backburner.tools.dialects.tasks import home_of
from backburner.tools.seen import ANYTHING, Answer, Offer, Parameter
from backburner.tools.standing import played

if TYPE_CHECKING:
    from backburner.app import Session

NAME = "spawn_background"

_SCHEDULE_FIELDS = ("cron_expression", "scheduled_at", "timezone")
_SCHEDULE_REPLY = (
    "created", "status", "schedule_id", "schedule_type", "cron_expression", "scheduled_at",
    "timezone", "next_trigger_at", "enabled", "task_id", "title", "tool", "signal_on_completion",
)  # fmt: skip
_HOW = "give cron_expression (5 fields) or scheduled_at (RFC 3339), and timezone if not UTC"


def offers(session: "Session | None") -> Sequence[Offer]:
    """The one tool; none where no tool is registered that it could start (E2)."""
    names: list[str] = []
    if session is not None:
        names = [tool.name for tool in home_of(session).startable()]
        if not names:
            return []
    known = f" One of {', '.join(names)}." if names else ""
    return [
        Offer(
            NAME,
            "Start a tool in the background, now or by a schedule, and go on. It survives restarts."
            " You are told when it ends: do not poll.",
            (
                Parameter("tool", "string", f"Its name.{known}", required=True),
                Parameter("args", "object", "Its arguments.", required=True),
                Parameter("title", "string", "For people; the tool's own unless given."),
                Parameter(
                    "schedule",
                    "object",
                    "cron_expression (5 fields) or scheduled_at (RFC 3339), exactly one of them;"
                    " timezone (IANA, UTC unless given).",
                ),
                Parameter(
                    "signal_on_completion", "boolean", "Be told of its end; true unless given."
                ),
            ),
            Spawning(session).spawn,
            ANYTHING,
        )
    ]


class Spawning:
    """The handler, over one session."""

    def __init__(self, session: "Session | None") -> None:
        self._session = session

    async def spawn(self, given: dict[str, Any]) -> Answer:
        """What the model calls."""
        session = self._session
        assert session is not None  # `offers_of` refuses the call
        tool = given["tool"].strip()
        if not tool:
            raise InvalidArguments(f"{NAME}: tool is blank", remedy="give the name of a tool")
        if tool == NAME:
            raise InvalidArguments(f"{NAME} cannot start itself", remedy="name another tool")
        title = (given.get("title") or "").strip() or None
        told = given.get("signal_on_completion", True)
        if "schedule" in given:
            return await self._schedule(session, tool, given, title, told=told)
        task = await session.spawn(tool, given["args"], title=title, signal_on_completion=told)
        document = task.document()
        data = {
            "run_id": task.id,
            "resource_id": task.id,
            "task_id": task.id,
            "title": document["title"],
            "tool": tool,
            "status": document["state"],
            "signal_on_completion": told,
            "artifact_dir": document["paths"]["dir"],
            "log_path": document["paths"]["log"],
            "result_path": document["paths"]["result"],
        }
        follows = "You are told when it ends: go on, do not poll." if told else "You are not told."
        said = played(task, Action.START) or f"{document['title']} runs as {task.id}. {follows}"
        return Answer(said, data)

    async def _schedule(
        self, session: "Session", tool: str, given: dict[str, Any], title: str | None, *, told: bool
    ) -> Answer:
        when, zone = _times(given["schedule"])
        schedule = await session.schedule(
            when,
            {"tool": tool, "args": given["args"]},
            tz=zone,
            title=title,
            signal_on_completion=told,
        )
        document = schedule.document()
        text = (
            played(schedule, Action.SCHEDULE)
            or f"{document['title']} is scheduled as {schedule.id}; it runs next at"
            f" {document['next_trigger_at']}."
        )
        return Answer(text, {name: document[name] for name in _SCHEDULE_REPLY})


def _times(schedule: dict[str, Any]) -> tuple[str, str]:
    """When, and the zone that this is meant in."""
    given = {name: value for name, value in schedule.items() if value is not None}
    for name, value in given.items():
        if name not in _SCHEDULE_FIELDS:
            raise InvalidArguments(f"schedule: {name[:40]!r} is no field of it", remedy=_HOW)
        if not isinstance(value, str) or not value.strip():
            raise InvalidArguments(f"schedule: {name} has to be a text", remedy=_HOW)
    if ("cron_expression" in given) == ("scheduled_at" in given):
        raise InvalidArguments(
            "schedule: give exactly one of cron_expression and scheduled_at", remedy=_HOW
        )
    single = "scheduled_at" in given
    when = given["scheduled_at" if single else "cron_expression"]
    if (read_when(when)[1] is not None) != single:
        raise InvalidArguments(
            f"schedule: {when[:60]!r} is no {'RFC 3339 time' if single else 'cron expression'}",
            remedy=_HOW,
        )
    return when, given.get("timezone", "UTC")
