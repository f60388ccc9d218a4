"""`backburner gateway`."""

import os
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backburner.cli import exits, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import Place, place
from backburner.model.errors import NotAllowed, UsageError

if TYPE_CHECKING:
    from backburner.app import Backburner
    from backburner.gateway.desk import Desk, Rights
    from backburner.gateway.terminal import Behind

HELP = """Background work in a chat: on Telegram, Discord, Slack, or here in the terminal.

Tokens come from the environment, and jobs do not see them. Only people on the list are answered:
--allow, or BACKBURNER_GATEWAY_ALLOW with ids between commas. Needs the extra `chat`.
"""

EXAMPLES = (
    "backburner gateway terminal",
    "backburner gateway telegram --allow 123456789",
    "backburner gateway discord --allow 80351110224678912 --shell",
    "backburner gateway slack --allow U024BE7LH --agent 'claude -p'",
)

AllowOption = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="USER", help="Somebody who may speak; again for several."),
]
ShellOption = Annotated[
    bool,
    typer.Option("--shell", help="Let them start shell commands, with all that you may do."),
]
HereOption = Annotated[
    str | None,
    typer.Option("--folder", metavar="DIR", help="Where jobs and agents work. [this folder]"),
]
FolderOption = Annotated[
    str | None,
    typer.Option(
        "--folder", metavar="DIR", help="Where jobs and agents work. [a folder of each chat's own]"
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="COMMAND",
        help="A command line that answers prompts. [the built-in agent, with BACKBURNER_MODEL]",
    ),
]
ZoneOption = Annotated[
    str,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help="Whose clocks /schedule means: Europe/Berlin. [UTC]",
        show_default=False,
    ),
]


def in_terminal(
    *,
    agent: AgentOption = None,
    folder: HereOption = None,
    tz: ZoneOption = "UTC",
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Chat here: talk, start background work, and be told when it ends.

    Tab completes commands and ids. Ctrl-C clears the line, ends an answer that is being written,
    or leaves; Ctrl-D leaves too. Tasks go on.
    """
    _refuse_json(as_json)
    streams = (sys.stdin, sys.stdout)
    if not all(map(terminal.is_terminal, streams)) or os.environ.get("TERM") == "dumb":
        raise UsageError("this needs a terminal", remedy="backburner run, ls and wait need none")
    _check_installed()
    from backburner.gateway.desk import Rights

    at = place(home, session)
    rights = Rights(jobs=True, folder=_folder(folder) or os.getcwd())
    return _carried_out(_chat_here(at, rights, agent, _zone(tz)))


def _on(name: str, title: str, tokens: str) -> Callable[..., int]:
    """The command for a platform of the network."""

    def serve_it(
        *,
        allow: AllowOption = None,
        shell: ShellOption = False,
        folder: FolderOption = None,
        agent: AgentOption = None,
        tz: ZoneOption = "UTC",
        as_json: JsonOption = False,
        home: HomeOption = None,
        session: SessionOption = None,
    ) -> int:
        at = _home_alone(home, session, as_json=as_json)
        rights = _rights(folder, shell=shell)
        return _carried_out(_serve(name, at, _allowed(allow), rights, agent=agent, zone=_zone(tz)))

    serve_it.__doc__ = f"Answer on {title}, with {tokens}.\n\nSee docs/{name}.md."
    return serve_it


VERBS = {
    "terminal": in_terminal,
    "telegram": _on("telegram", "Telegram", "TELEGRAM_BOT_TOKEN"),
    "discord": _on("discord", "Discord", "DISCORD_BOT_TOKEN"),
    "slack": _on("slack", "Slack", "SLACK_BOT_TOKEN and SLACK_APP_TOKEN"),
}


def _rights(folder: str | None, *, shell: bool) -> "Rights":
    from backburner.gateway.desk import Rights

    return Rights(jobs=shell, folder=_folder(folder))


def _home_alone(home: str | None, session: str | None, *, as_json: bool) -> Place:
    _refuse_json(as_json)
    if session is not None:
        raise UsageError("--session: each chat has a session of its own", remedy="leave it out")
    return place(home, None)


def _refuse_json(as_json: bool) -> None:
    if as_json:
        raise UsageError("a chat is for people", remedy="backburner serve is for programs")


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("prompt_toolkit") is None:
        raise UsageError(
            "the extra `chat` is not installed", remedy='pip install "backburner[chat]"'
        )


def _folder(given: str | None) -> str | None:
    if given is None:
        return None
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.isdir(path):
        raise UsageError(f"--folder: {given!r} is no folder")
    return path


def _zone(given: str) -> str:
    from backburner.runtime.schedules.calendar import zone_of

    zone_of(given)  # UsageError
    return given


def _carried_out(work: Coroutine[Any, Any, int]) -> int:
    """Until it ends, or somebody ends it: a service manager's TERM is a plain end."""
    import asyncio
    import signal

    async def main() -> int:
        told_to_leave = asyncio.Event()
        task = asyncio.ensure_future(work)

        def leave() -> None:
            told_to_leave.set()
            task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
        try:
            return await task
        except asyncio.CancelledError:
            if told_to_leave.is_set():
                return exits.DONE
            raise

    return asyncio.run(main())


async def _chat_here(at: Place, rights: "Rights", agent: str | None, zone: str) -> int:
    import contextlib

    from backburner.app import Backburner
    from backburner.gateway.gateway import Setup, serve
    from backburner.gateway.people import LocalPerson
    from backburner.gateway.posting import Pace
    from backburner.gateway.terminal import Terminal
    from backburner.gateway.tokens import taken
    from backburner.work.tools.own_folder import as_name

    taken()  # of other gateways: jobs that are started here need them no more than others do
    async with Backburner.open(at.home.where) as backburner:
        with contextlib.suppress(FileExistsError):
            os.mkdir(at.home.gateway, 0o700)
        here = Terminal(f"{at.home.gateway}/history-{as_name(at.session)}")
        setup = Setup(rights, agent, zone, pace=Pace(every_s=0.0), line=at.session)

        def connect(desk: "Desk") -> None:
            here.connect(_behind(backburner, at, desk))

        await serve(backburner, here, LocalPerson(at.scope), setup, listening=connect)
    say.message("tasks go on; backburner ls shows them")
    return exits.INTERRUPTED if here.interrupted else exits.DONE


def _behind(backburner: "Backburner", at: Place, desk: "Desk") -> "Behind":
    """What the terminal asks of the home."""
    from backburner.gateway import wording
    from backburner.gateway.terminal import Behind
    from backburner.model.states import ACTIVE

    session = backburner.session(at.session, owner=at.owner)

    async def tasks() -> list[tuple[str, str]]:
        found = await session.tasks(limit=50)
        return [(task.id, wording.titled(task.record)) for task in found]

    async def interrupt() -> bool:
        return await desk.talking.stop(at.scope)

    async def greet() -> str:
        active = await session.tasks(limit=10, states=[*ACTIVE])
        running = [wording.line(task.record) for task in active]
        hello = f"Session {at.session}. /help lists the commands; Ctrl-D leaves, and tasks go on."
        return "\n".join([hello, *(running or ["No task is running."])])

    def is_answering() -> bool:
        return desk.talking.is_live(at.scope)

    return Behind(desk.commands, tasks, is_answering, interrupt, greet)


async def _serve(
    name: str,
    at: Place,
    allowed: frozenset[str],
    rights: "Rights",
    *,
    agent: str | None,
    zone: str,
) -> int:
    from backburner.app import Backburner
    from backburner.gateway.gateway import Setup, serve
    from backburner.gateway.people import Guests
    from backburner.gateway.platform import BadCredentials
    from backburner.gateway.platforms import platform
    from backburner.gateway.tokens import taken

    tokens = taken()
    chosen = platform(name, {**os.environ, **tokens})

    def announce(_: "Desk") -> None:
        say.message(
            f"listening on {name} for {len(allowed) or 'nobody'} on the list; Ctrl-C ends it"
        )
        if not allowed:
            say.hint("write /whoami to the bot to learn your id, then give it to --allow")

    async with Backburner.open(at.home.where) as backburner:
        try:
            setup = Setup(rights, agent, zone)
            await serve(backburner, chosen, Guests(name, allowed), setup, listening=announce)
        except BadCredentials as error:
            raise NotAllowed(str(error), remedy=f"see docs/{name}.md") from None
    return exits.DONE


def _allowed(given: list[str] | None) -> frozenset[str]:
    listed = [*(given or []), os.environ.get("BACKBURNER_GATEWAY_ALLOW", "")]
    ids = frozenset(each.strip() for text in listed for each in text.split(",") if each.strip())
    for each in ids:
        if not each.isalnum():
            raise UsageError(
                f"--allow: {each!r} is no id", remedy="write /whoami to the bot to learn yours"
            )
    return ids
