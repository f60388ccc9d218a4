"""`signals --failed` and `--resend`: what could not be delivered, and sending it again."""

import sys
from typing import TYPE_CHECKING

from backburner.cli import exits, phrases, say, terminal
from backburner.cli.place import Place, act
from backburner.cli.table import Cell, Column, Table
from backburner.model import clock
from backburner.model.clock import SECOND, format_duration
from backburner.model.errors import NotFound
from backburner.model.signals import GIVEN_UP, INBOX, NOTIFY, SignalKind, SignalState
from backburner.model.signals import Signal as Record

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Signal

_PAGE = 500
_STATES = (SignalState.FAILED, SignalState.DROPPED)


def dead_letters(at: Place, resend: str | None, *, as_json: bool) -> int:
    """List them, or send one or all of them again."""

    async def work(backburner: "Backburner", session: "Session") -> int:
        letters = await _all(session)
        if resend is not None:
            letters = _chosen(letters, resend, session.name)
            return await _send_again(backburner, letters, as_json=as_json)
        if as_json:
            say.json_list(letter.document() for letter in letters)
        elif letters:
            _print_table([letter.record for letter in letters])
        else:
            say.message(f"no failed deliveries in session {session.name!r}")
        return exits.DONE

    return act(at, work)


async def _all(session: "Session") -> list["Signal"]:
    found: list[Signal] = []
    after = 0
    while page := await session.told(states=_STATES, channel=None, after=after, limit=_PAGE):
        found += [signal for signal in page if _is_undelivered(signal.record)]
        after = page[-1].record.seq
    return found


def _is_undelivered(record: Record) -> bool:
    if record.channel == INBOX:  # of a chat that could not be followed up
        given_up = (record.reason or "").startswith(GIVEN_UP)
        return record.state is SignalState.FAILED or given_up
    # That a question needs no answer any more is no failure.
    settled = record.kind is SignalKind.INPUT_REQUIRED and record.state is SignalState.DROPPED
    return not settled or (record.reason or "").startswith(GIVEN_UP)


def _chosen(letters: list["Signal"], key: str, session: str) -> list["Signal"]:
    if key == "all":
        return letters
    chosen = [letter for letter in letters if letter.key == key]
    if not chosen:
        raise NotFound(
            f"no failed delivery {key!r} in session {session!r}",
            remedy="backburner signals --failed lists them with their keys",
        )
    return chosen


async def _send_again(backburner: "Backburner", letters: list["Signal"], *, as_json: bool) -> int:
    usable = {INBOX, NOTIFY} | {
        each.name for each in await backburner.channels() if not each.paused
    }
    sent = [letter for letter in letters if await letter.resend()]
    if as_json:
        say.document({"resent": [letter.key for letter in sent]})
    else:
        say.data(f"{len(sent)} sent again")
    # Any other that was not sent is under way at this moment.
    left = [letter for letter in letters if letter.record.channel not in usable]
    if left:
        names = ", ".join(sorted({letter.record.channel for letter in left}))
        say.message(f"{len(left)} not sent: the channel is gone or paused: {names}")
        say.hint("backburner channel ls lists the channels, backburner channel resume goes on")
    return exits.FAILED if left else exits.DONE


def _print_table(records: list[Record]) -> None:
    now = clock.now()
    table = Table(
        [
            Column("KEY"),
            Column("AGE", right=True),
            Column("TRIES", right=True),
            Column("NEXT TRY", right=True),
            Column("REASON", least=20),
        ],
        width=terminal.width(sys.stdout),
        colours=terminal.shows_colours(sys.stdout),
    )
    rows = [
        [
            Cell(record.key),
            Cell(phrases.since(record.created_at, now)),
            Cell(str(record.tries)),
            Cell(_next_try(record, now), None if record.retry_at else "red"),
            Cell(record.reason or ""),
        ]
        for record in records
    ]
    for line in table.lines(rows):
        say.data(line)


def _next_try(record: Record, now: clock.Instant) -> str:
    if record.state is SignalState.DROPPED or record.retry_at is None:
        return "never"
    return f"in {format_duration(max(0, record.retry_at - now) / SECOND)}"
