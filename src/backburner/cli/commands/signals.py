"""`backburner signals`."""

import contextlib
import sys
from collections import deque
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, phrases, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import act, place
from backburner.cli.table import Cell, Column, Table
from backburner.cli.textwidth import clean
from backburner.model import clock
from backburner.model.errors import UsageError
from backburner.model.signals import SignalKind, SignalState

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Signal

EXAMPLES = (
    "backburner signals",
    "backburner signals --follow",
    "backburner signals --follow --ack --json | while read -r signal; do …; done",
    "backburner signals --failed              what could not be delivered",
    "backburner signals --resend all",
    "backburner signals --hook claude-code    in the settings of that agent",
)

_RECENT = 50
_PAGE = 500

_OPEN = (SignalState.PENDING, SignalState.CLAIMED, SignalState.FAILED)

_KIND_COLOURS = {
    SignalKind.COMPLETED: "green",
    SignalKind.FAILED: "red",
    SignalKind.CANCELED: "yellow",
}
_STATE_COLOURS = {
    SignalState.PENDING: "cyan",
    SignalState.CLAIMED: "cyan",
    SignalState.DELIVERED: "dim",
    SignalState.FAILED: "red",
    SignalState.DROPPED: "yellow",
}


def command(
    *,
    keep_on: Annotated[
        bool, typer.Option("--follow", "-f", help="Open ones, then new ones as they come.")
    ] = False,
    acknowledge: Annotated[
        bool,
        typer.Option("--ack", help="Acknowledge what was printed: nobody is told of it again."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All, not only open ones and the newest 50.")
    ] = False,
    undelivered: Annotated[
        bool,
        typer.Option(
            "--failed", help="What could not be delivered: waits for its next try, or given up."
        ),
    ] = False,
    resend: Annotated[
        str | None,
        typer.Option("--resend", metavar="KEY|all", help="Deliver one of those, or all, again."),
    ] = None,
    hook: Annotated[
        str | None,
        typer.Option(
            "--hook",
            metavar="NAME",
            help="For a hook of this coding agent: what is new, in its format, or nothing.",
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """List what the session was and is to be told.

    Oldest first. Without --ack this only looks: the signals stay for whoever is to be told. With
    it, each is taken, printed, and acknowledged once it was printed.
    """

    if hook is not None:
        if keep_on or everything or acknowledge or undelivered or resend is not None or as_json:
            raise UsageError("--hook has a format of its own", remedy="use it alone")
        from backburner.cli.hook import hooked

        return hooked(hook, home, session)
    if keep_on and everything:
        raise UsageError("--follow and --all do not go together", remedy="use one of them")
    if (undelivered or resend is not None) and (keep_on or everything or acknowledge):
        raise UsageError(
            "--failed and --resend are about deliveries, the other options about the inbox",
            remedy="use them alone",
        )
    if undelivered or resend is not None:
        from backburner.cli.dead_letters import dead_letters

        return dead_letters(place(home, session), resend, as_json=as_json)

    async def work(backburner: "Backburner", session: "Session") -> int:
        if keep_on:
            return await _follow(backburner, session, acknowledge, as_json)
        signals = await _there(session, everything=everything)
        if as_json:
            say.json_list(signal.document() for signal in signals)
        elif signals:
            _print_table(signals)
        else:
            say.message(f"no signals in session {session.name!r}")
        if acknowledge:
            sys.stdout.flush()  # told first, then acknowledged
            keys = [signal.key for signal in signals]
            count = await backburner.inbox.acknowledge(keys, session.scope)
            say.message(f"{count} acknowledged")
        return exits.DONE

    return act(place(home, session), work)


async def _follow(
    backburner: "Backburner", session: "Session", acknowledge: bool, as_json: bool
) -> int:
    from backburner.runtime.outages import endured

    coming = session.signals() if acknowledge else _coming(backburner, session)
    # Closed before the home is: what was taken and not acknowledged goes back at once.
    async with contextlib.aclosing(coming):
        async for signal in coming:
            _print_one(signal, as_json=as_json)
            if acknowledge:
                await endured(signal.ack)
    return exits.DONE


async def _there(session: "Session", *, everything: bool) -> list["Signal"]:
    """All signals, or the open ones and the newest."""
    open_ones: list[Signal] = []
    newest: deque[Signal] = deque(maxlen=None if everything else _RECENT)
    after = 0
    while page := await session.told(after=after, limit=_PAGE):
        open_ones += [signal for signal in page if signal.record.state in _OPEN]
        newest.extend(page)
        after = page[-1].record.seq
    chosen = {signal.record.seq: signal for signal in (*open_ones, *newest)}
    return [chosen[seq] for seq in sorted(chosen)]


async def _coming(backburner: "Backburner", session: "Session") -> AsyncGenerator["Signal"]:
    """Open signals, then new ones as they are written, without taking them from anyone."""
    import asyncio
    from functools import partial

    from backburner.runtime.outages import endured

    changed = asyncio.Event()
    unsubscribe = backburner.store.on_change(changed.set)
    after = 0
    old = True
    try:
        while True:
            changed.clear()
            while page := await endured(partial(session.told, after=after, limit=_PAGE)):
                for signal in page:
                    # A new one is shown also where it was delivered by the time we look.
                    if not old or signal.record.state in _OPEN:
                        yield signal
                after = page[-1].record.seq
            old = False
            await changed.wait()
    finally:
        unsubscribe()


def _print_one(signal: "Signal", *, as_json: bool) -> None:
    if as_json:
        say.json_line(signal.document())
        return
    text = clean(signal.text)
    if terminal.shows_colours(sys.stdout):
        text = terminal.paint(text, _KIND_COLOURS.get(signal.record.kind))
    say.at_once(f"{text}\n")


def _print_table(signals: list["Signal"]) -> None:
    now = clock.now()
    table = Table(
        [Column("KIND"), Column("AGE", right=True), Column("STATE"), Column("TEXT", least=20)],
        width=terminal.width(sys.stdout),
        colours=terminal.shows_colours(sys.stdout),
    )
    rows = [
        [
            Cell(record.kind.value, _KIND_COLOURS.get(record.kind)),
            Cell(phrases.since(record.created_at, now)),
            Cell(
                f"{record.state.value}: {record.reason}" if record.reason else record.state.value,
                _STATE_COLOURS[record.state],
            ),
            Cell(record.text),
        ]
        for record in (signal.record for signal in signals)
    ]
    for line in table.lines(rows):
        say.data(line)
