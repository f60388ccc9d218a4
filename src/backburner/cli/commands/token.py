"""`backburner token`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, options, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import act, place
from backburner.cli.table import Cell, Column, Table
from backburner.model import clock
from backburner.model.limits import DEFAULT_OWNER

if TYPE_CHECKING:
    from backburner.app import Backburner, Session
    from backburner.model.tokens import Token

HELP = """Make and manage tokens: what callers of the HTTP API show.

A token stands for an owner and a role: an admin, a user, or a viewer, who only looks. It is shown
once, and kept as a hash. Whoever has one of a user can run commands on this machine.
"""

EXAMPLES = (
    "backburner token create --label laptop",
    "backburner token create --role viewer --expires 7d",
    "backburner token create --owner ada --only-session chat-42",
    "backburner token ls",
    "backburner token revoke 6c2r8m",
)


def create_token(
    *,
    label: Annotated[
        str, typer.Option("--label", metavar="TEXT", help="What it is for, to tell it apart.")
    ] = "",
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="admin, user or viewer.")
    ] = "user",
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME", help="Whose tasks it opens.")
    ] = DEFAULT_OWNER,
    only_session: Annotated[
        str | None,
        typer.Option("--only-session", metavar="NAME", help="Open one session and no other."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DURATION", help="It ends after this, such as 30d."),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Make a token, and print it: this once.

    Nobody can show it again.
    """
    lasts_s = None if expires is None else options.seconds(expires, "--expires")

    async def work(backburner: "Backburner", _: "Session") -> int:
        from backburner.runtime.tokens import TokenService

        tokens = TokenService(backburner.store, backburner.home)
        token, text = await tokens.create(
            label, owner=owner, role=role, session=only_session, lasts_s=lasts_s
        )
        if as_json:
            say.document({**token.document(), "token": text})
        else:
            say.data(text)
        return exits.DONE

    return act(place(home, session), work)


def list_tokens(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """List the tokens of this home, and when each was last used."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        from backburner.runtime.tokens import TokenService

        tokens = await TokenService(backburner.store, backburner.home).listed()
        if as_json:
            say.json_list(token.document() for token in tokens)
        elif tokens:
            _print_table(tokens)
        else:
            say.message("no tokens")
            say.hint("backburner token create makes one")
        return exits.DONE

    return act(place(home, session), work)


def revoke_token(
    name: Annotated[str, typer.Argument(metavar="ID", hidden=True)],
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Take a token back; what is open with it ends within seconds.

    The token is named by its id, or by enough of it.
    """

    async def work(backburner: "Backburner", _: "Session") -> int:
        from backburner.runtime.tokens import TokenService

        token = await TokenService(backburner.store, backburner.home).revoke(name)
        if as_json:
            say.document(token.document())
        else:
            say.message(f"{token.id} opens nothing any more")
        return exits.DONE

    return act(place(home, session), work)


VERBS = {"create": create_token, "ls": list_tokens, "revoke": revoke_token}


def _print_table(tokens: list["Token"]) -> None:
    table = Table(
        [
            Column("TOKEN"),
            Column("LABEL", least=8),
            Column("OWNER", least=6),
            Column("ROLE"),
            Column("SESSION", least=6),
            Column("LAST USED"),
            Column("STATE"),
        ],
        width=terminal.width(sys.stdout),
        colours=terminal.shows_colours(sys.stdout),
    )
    for line in table.lines([_row(token) for token in tokens]):
        say.data(line)


def _row(token: "Token") -> list[Cell]:
    now = clock.now()
    used = token.last_used_at
    if token.holds(now):
        state = Cell("open", "green")
    else:
        state = Cell("revoked" if token.revoked_at else "expired", "yellow")
    return [
        Cell(token.id),
        Cell(token.label),
        Cell(token.owner),
        Cell(token.role.value),
        Cell(token.session or "all"),
        Cell("never" if used is None else clock.rfc3339(used)[:16].replace("T", " ")),
        state,
    ]
