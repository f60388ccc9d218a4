"""`backburner channel`: where signals are pushed to."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption, signal_kinds
from backburner.cli.place import act, place
from backburner.cli.table import Cell, Column, Table
from backburner.model.channels import Channel, shown_target
from backburner.model.document import channel_document

if TYPE_CHECKING:
    from backburner.app import Backburner, Session

HELP = """Push signals to a command, a webhook or the screen.

What cannot be delivered is tried again after 5 seconds, 30 seconds, 2 minutes, 10 minutes and an
hour, and then given up: see `backburner signals --failed`. A repetition has the same key: a
delivery can reach its receiver twice when this machine goes down in the middle of it.
"""

EXAMPLES = (
    "backburner channel add phone --webhook https://example.com/hook --kind failed",
    "backburner channel add local --webhook http://localhost:8080/ --allow-private",
    "backburner channel add log --command 'cat >>signals.jsonl' --all-sessions",
    "backburner channel add mail --command 'mail -s \"$BACKBURNER_SIGNAL_TEXT\" me'",
    "backburner channel add screen --desktop --kind completed --kind failed",
    "backburner channel test phone",
    "backburner channel ls",
    "backburner channel resume phone",
    "backburner channel rm phone",
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


def _add(
    name: NameArgument,
    *,
    line: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="LINE",
            help="A line for sh. It gets the signal as JSON on standard input, and "
            "BACKBURNER_SIGNAL_KIND, _TASK, _KEY and _TEXT; exit code 0 means delivered.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook", metavar="URL", help="A POST of JSON, signed as Standard Webhooks say."
        ),
    ] = None,
    desktop: Annotated[
        bool, typer.Option("--desktop", help="A notification on this screen (notify-send).")
    ] = False,
    allow_private: Annotated[
        bool,
        typer.Option(
            "--allow-private", help="The address may be one of this machine or of its network."
        ),
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only these: completed, failed, canceled, input_required, ready, match, silent; "
            "repeatable. [all]",
        ),
    ] = None,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="The signals of every session.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Push signals there from now on.

    For a webhook this prints the key that its receiver checks the signatures with, this once. The
    keeper delivers: a command runs in your home folder, without the variables of this terminal,
    for 30 seconds at the most.
    """
    kinds = None if not kind else signal_kinds(kind, "--kind")
    at = place(home, session)

    async def work(backburner: "Backburner", session: "Session") -> int:
        key = await backburner.add_channel(
            name,
            command=line,
            webhook=webhook,
            desktop=desktop,
            kinds=kinds,
            allow_private=allow_private,
            session=None if all_sessions else session.name,
        )
        if as_json:
            (channel,) = [each for each in await backburner.channels() if each.name == name]
            say.document(channel_document(channel) | ({"secret": key} if key else {}))
        elif key is not None:
            say.data(key)
            say.message(f"the channel {name} signs with this key, which is not shown again")
        return exits.DONE

    return act(at, work)


def _ls(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """List the channels of every session."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        channels = await backburner.channels()
        if as_json:
            say.json_list(channel_document(channel) for channel in channels)
        elif channels:
            _print_table(channels)
        else:
            say.message("no channels")
        return exits.DONE

    return act(place(home, session), work)


def _rm(
    name: NameArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Push nothing there any more; what was not delivered is dropped."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        await backburner.remove_channel(name)
        if as_json:
            say.document({"name": name, "removed": True})
        return exits.DONE

    return act(place(home, session), work)


def _resume(
    name: NameArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Go on with a channel that is paused.

    A channel is paused when its receiver answers 410 Gone. What was dropped meanwhile is sent by
    `backburner signals --resend all`.
    """

    async def work(backburner: "Backburner", _: "Session") -> int:
        resumed = await backburner.resume_channel(name)
        if as_json:
            say.document({"name": name, "resumed": resumed})
        elif not resumed:
            say.message(f"the channel {name} is not paused")
        return exits.DONE

    return act(place(home, session), work)


def _test(
    name: NameArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Try a channel out, and tell what became of it.

    Delivers a signal that says it is a test: from here, once, and it is not recorded.
    """

    async def work(backburner: "Backburner", _: "Session") -> int:
        reason = await backburner.test_channel(name)
        if as_json:
            say.document({"name": name, "delivered": reason is None, "reason": reason})
        elif reason is None:
            say.data("delivered")
        else:
            say.message(f"not delivered: {reason}")
        return exits.DONE if reason is None else exits.FAILED

    return act(place(home, session), work)


VERBS = {"add": _add, "ls": _ls, "rm": _rm, "resume": _resume, "test": _test}


def _print_table(channels: list[Channel]) -> None:
    columns = ["NAME", "TYPE", "SESSION", "SIGNALS", "STATE"]
    table = Table(
        [*(Column(title) for title in columns), Column("TARGET", least=20)],
        width=terminal.width(sys.stdout),
        colours=terminal.shows_colours(sys.stdout),
    )
    rows = [
        [
            Cell(channel.name, "bold"),
            Cell(channel.kind.value),
            Cell("(all)" if channel.session is None else channel.session),
            Cell("(all)" if channel.kinds is None else ",".join(sorted(channel.kinds))),
            Cell("paused", "red") if channel.paused else Cell("on", "green"),
            Cell(shown_target(channel)),
        ]
        for channel in channels
    ]
    for line in table.lines(rows):
        say.data(line)
    for channel in channels:
        if channel.paused:
            say.message(f"{channel.name} is paused: {channel.paused}")
