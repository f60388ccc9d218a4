"""`backburner schedule`."""

from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.options import (
    HomeOption,
    JsonOption,
    SessionOption,
    max_runtime,
    seconds,
    variables,
)
from backburner.cli.order_options import PriorityOption, priority_of
from backburner.cli.place import Place, act, place
from backburner.cli.schedule_options import (
    AtOption,
    CronOption,
    FolderOption,
    IdOption,
    JitterOption,
    MaxRuntimeOption,
    MissedOption,
    OverlapOption,
    TitleOption,
    VariableOption,
    ZoneOption,
    from_now,
    read_when,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from backburner.app import Backburner, Schedule, Session

HELP = """Start commands by the clock.

The keeper fires: it is there while a schedule is active, also after a boot where `backburner
service install` was called. In a record that many machines share, the workers do, each firing once.
Each firing starts a task; `backburner ls` shows it, and the session is told of its end.
"""

EXAMPLES = (
    "backburner schedule add --cron '30 2 * * *' --tz Europe/Berlin -- ./backup.sh",
    "backburner schedule add --cron '*/10 * * * *' --overlap queue --jitter 30s -- make check",
    "backburner schedule add --at +90m --title tea -- notify-send tea",
    "backburner schedule add --at 2030-12-24T18:00:00+01:00 -- ./light-the-tree.sh",
    "backburner schedule ls --all-sessions",
    "backburner schedule show sc_7k2m",
    "backburner schedule pause sc_7k2m",
    "backburner schedule resume sc_7k2m",
    "backburner schedule rm sc_7k2m",
)

# What follows the first word belongs to the command, options included.
CONTEXTS = {"add": {"allow_interspersed_args": False}}

ScheduleArgument = Annotated[str, typer.Argument(metavar="ID", hidden=True)]


def add(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND", hidden=True)],
    *,
    cron: CronOption = None,
    at: AtOption = None,
    tz: ZoneOption = "UTC",
    title: TitleOption = None,
    missed: MissedOption = "once",
    overlap: OverlapOption = "skip",
    jitter: JitterOption = "0",
    longest: MaxRuntimeOption = "1h",
    priority: PriorityOption = "0",
    cwd: FolderOption = None,
    env: VariableOption = None,
    id: IdOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Start a command by the clock, and print the schedule's id.

    It is started in this folder, with the variables that are set now.
    """
    when = read_when(cron, at)
    first = priority_of(priority)
    late, limit, variables_given = (
        seconds(jitter, "--jitter"),
        max_runtime(longest),
        variables(env or []),
    )

    async def work(backburner: "Backburner", session: "Session") -> int:
        command = words[0] if len(words) == 1 else words
        made = await session.schedule(
            from_now(when, backburner.store.now()),
            {"command": command, "env": variables_given, **({} if cwd is None else {"cwd": cwd})},
            tz=tz,
            title=title,
            missed=missed,
            overlap=overlap,
            jitter=late,
            max_runtime=limit,
            priority=first,
            id=id,
        )
        if as_json:
            say.document(made.document())
        else:
            say.data(made.id)
        return exits.DONE

    return act(place(home, session), work)


def list_schedules(
    *,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="The schedules of every session.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Also those that have ended.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """List the schedules that are active or paused."""
    at = place(home, session)

    async def work(backburner: "Backburner", _: "Session") -> int:
        from backburner.app import Schedule
        from backburner.cli.schedule_table import table

        scope = at.every_session if all_sessions else at.scope
        found = await backburner.store.schedules(scope)
        found = [each for each in found if everything or not each.state.ended]
        if as_json:
            say.json_list(Schedule(backburner, each).document() for each in found)
        elif found:
            for line in table(found, sessions=all_sessions):
                say.data(line)
        else:
            say.message("no schedules" if all_sessions else f"no schedules in session {at.session}")
            say.hint("backburner schedule add --cron '30 2 * * *' -- COMMAND makes one")
        return exits.DONE

    return act(at, work)


def show(
    schedule: ScheduleArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Show one schedule, and what became of its last firings."""

    async def work(_: "Backburner", session: "Session") -> int:
        from backburner.cli.schedule_table import portrait

        found = await session.find_schedule(schedule)
        firings = await found.firings(limit=20)
        if as_json:
            say.document({**found.document(), "firings": [firing.document() for firing in firings]})
        else:
            for line in portrait(found.record, firings):
                say.data(line)
        return exits.DONE

    return act(place(home, session), work)


def _changed(
    schedule: str,
    change: "Callable[[Schedule], Awaitable[Schedule]]",
    where: Place,
    *,
    as_json: bool,
) -> int:
    """Find a schedule, change it, and tell how it stands then."""

    async def work(_: "Backburner", session: "Session") -> int:
        return _tell(await change(await session.find_schedule(schedule)), as_json=as_json)

    return act(where, work)


def pause(
    schedule: ScheduleArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Fire no more of a schedule until it is resumed. What would have fired is not missed."""
    return _changed(schedule, lambda found: found.pause(), place(home, session), as_json=as_json)


def resume(
    schedule: ScheduleArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Go on with a schedule that is paused."""
    return _changed(schedule, lambda found: found.resume(), place(home, session), as_json=as_json)


def remove(
    schedule: ScheduleArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Cancel a schedule. The tasks that it has started go on."""
    return _changed(schedule, lambda found: found.cancel(), place(home, session), as_json=as_json)


VERBS = {
    "add": add,
    "ls": list_schedules,
    "show": show,
    "pause": pause,
    "resume": resume,
    "rm": remove,
}


def _tell(schedule: "Schedule", *, as_json: bool) -> int:
    if as_json:
        say.document(schedule.document())
        return exits.DONE
    from backburner.cli.schedule_table import until
    from backburner.model import clock

    due = schedule.record.due_at
    following = "" if due is None else f"; it fires {until(due, clock.now())}"
    say.message(f"{schedule.id} is {schedule.state}{following}")
    return exits.DONE
