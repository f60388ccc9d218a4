"""`backburner worker`."""

import os
import sys
from typing import Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.guard import details_belong_to
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import session_named
from backburner.model.database import is_database
from backburner.model.errors import UsageError
from backburner.model.home import Home, own_folder, resolve_home
from backburner.runtime.home import DATABASE, check_database_installed

EXAMPLES = (
    "backburner worker --database postgresql://backburner@db/work",
    "backburner worker --queue default --queue gpu --concurrency 8   BACKBURNER_DATABASE is set",
    "backburner worker --listen 9464   then: curl localhost:9464/metrics",
)


def command(
    *,
    database: Annotated[
        str | None,
        typer.Option(
            "--database", metavar="URL", help="postgresql://user@host/name [BACKBURNER_DATABASE]"
        ),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            metavar="NAME",
            help="Take tasks of this queue; again for several. [default: those without one]",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, max=10_000, help="Tasks at once.")
    ] = 64,
    dead_after: Annotated[
        float,
        typer.Option(
            "--dead-after",
            metavar="SECONDS",
            min=1,
            help="A worker that is not heard of for so long is dead, and what it had is seen to.",
        ),
    ] = 30.0,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="[HOST:]PORT",
            help="Answer /healthz, /readyz and /metrics there. [HOST: this machine alone]",
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Carry out tasks of a record that many machines share, until SIGTERM or Ctrl-C.

    It then takes on nothing more, and leaves when its last task has ended; told again, it leaves at
    once. What runs goes on, and a worker that is started with the same home goes on with it. Needs
    the extra `postgres`.
    """
    address = database or os.environ.get(DATABASE) or os.environ.get("BACKBURNER_HOME", "")
    if not is_database(address):
        raise UsageError(
            "a worker needs a database", remedy="give --database postgresql://user@host/name"
        )
    session_named(session)
    check_database_installed()
    import asyncio

    root = own_folder() / "node" if home is None else resolve_home(home)
    details_belong_to(root)
    at = Home(root, address)

    def announce(name: str, probes: str | None) -> None:
        if as_json:
            say.json_line({"node": name, "queues": queue or ["default"], "listens": probes})
        if probes is not None:
            say.message(f"{name} answers at {probes}/readyz")
        say.message(f"{name} takes on {', '.join(queue or ['default'])}")
        sys.stderr.flush()

    from backburner.runtime.node import Terms, work

    terms = Terms(queues=tuple(queue or ["default"]), concurrency=concurrency, silent_s=dead_after)
    asyncio.run(work(address, at, terms, announce=announce, report=say.message, listen=listen))
    return exits.DONE
