"""What a dry run answers for a session: what would happen, or the error that would come.

Tools, their arguments and the times of schedules are checked as if it were meant; nothing is
written and nothing starts.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from backburner.app.acting import said_only, unrecorded
from backburner.app.task import Task
from backburner.app.unrecorded import UnrecordedTask
from backburner.model.policy import DRY_RUN
from backburner.model.states import Kind
from backburner.model.task import check_title, preview

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.app.schedule import Schedule
    from backburner.app.session import Session

_KINDS = {"run": Kind.SHELL, "call": Kind.PYTHON, "spawn": Kind.TOOL, "ask": Kind.AGENT}
"""What each way to start work makes."""


async def rehearse(
    backburner: "Backburner", session: "Session", name: str, given: Mapping[str, Any]
) -> Any:
    """Answers to the method of this name, called with these arguments."""
    first = next(iter(given.values()), None)
    check_title(given.get("title"))
    match name:
        case "run" | "call" | "spawn" | "ask":
            if name == "spawn":
                await _check_call(backburner, given, background=True)
            words = first if isinstance(first, str) else " ".join(map(str, first or ()))
            record = unrecorded(session.scope, _KINDS[name], words)
            return UnrecordedTask(backburner, record, policy=session.policy)
        case "invoke":
            from backburner.runtime.runs.tools import Invocation

            await _check_call(backburner, given, background=False)
            said = f"{DRY_RUN} would run: {preview(str(first))}"
            return Invocation(str(first), summary=said, message=said)
        case "stop":
            record = await backburner.tasks.find(str(first), session.scope)
            return Task(backburner, said_only(record, "stop"), policy=session.policy)
        case "schedule":
            return await _scheduled(backburner, session, given)
        case _:
            return None


async def _check_call(
    backburner: "Backburner", given: Mapping[str, Any], *, background: bool
) -> None:
    from backburner.work.python import check_arguments
    from backburner.work.tools.tool import refuse_in_background, refuse_without_function

    tool = (await backburner.known_tools()).get(given["tool"])
    (refuse_in_background if background else refuse_without_function)(tool)
    arguments: Mapping[str, Any] = given["arguments"] or {}
    tool.validate(arguments)
    check_arguments(arguments)


async def _scheduled(
    backburner: "Backburner", session: "Session", given: Mapping[str, Any]
) -> "Schedule":
    from backburner.app.schedule import service, unrecorded_schedule
    from backburner.app.scheduling import read_work, refuse_agents
    from backburner.runtime.schedules.service import ScheduleOptions, beginning

    await refuse_agents(backburner, session.scope)
    options = ScheduleOptions(
        given["tz"],
        given["title"],
        given["missed"],
        given["overlap"],
        given["jitter"],
        given["max_runtime"],
        given["signal_on_completion"],
        given["id"],
    )
    work = await read_work(backburner, given["spec"], session.folder)
    new = service(backburner).checked(session.scope, given["when"], work, options)
    beginning(new, backburner.store.now())
    return unrecorded_schedule(backburner, session.scope, str(given["when"]), session.policy)
