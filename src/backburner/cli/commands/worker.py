"""`backburner worker`."""

import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.guard import details_belong_to
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import session_named
from backburner.model.database import check_address, is_database
from backburner.model.errors import UsageError
from backburner.model.home import Home, own_folder, resolve_home
from backburner.model.order import NO_QUEUE, check_queue
from backburner.runtime.home import DATABASE, check_database_installed

if TYPE_CHECKING:
    from backburner.app import Backburner
    from backburner.app.runs import Runs
    from backburner.runtime.node import Terms

EXAMPLES = (
    "backburner worker --database postgresql://backburner@db/work",
    "backburner worker --tools shop.tools        the tools of an application, and its agents",
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
    tools: Annotated[
        list[str] | None,
        typer.Option(
            "--tools",
            metavar="MODULE",
            help="Carry out the tools and agents of package.module, or package.module:object; "
            "again for several.",
        ),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency",
            metavar="N",
            min=1,
            max=10_000,
            help="Commands at once. Tools and agents: as many again, and not more than 64 unless "
            "BACKBURNER_TOOLS_PER_WORKER says so.",
        ),
    ] = 64,
    dead_after: Annotated[
        float | None,
        typer.Option(
            "--dead-after",
            metavar="SECONDS",
            min=1,
            max=86400,
            help="When it is not heard of for so long it is dead, and what it had is seen to. "
            "[default: 30]",
        ),
    ] = None,
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
    given = database or os.environ.get(DATABASE)
    address = given or os.environ.get("BACKBURNER_HOME", "")
    if not given and not is_database(address):  # the home may well be a folder
        raise UsageError(
            "a worker needs a database", remedy="give --database postgresql://user@host/name"
        )
    check_address(address)
    session_named(session)
    check_database_installed()
    import asyncio

    root = own_folder() / "node" if home is None else resolve_home(home)
    details_belong_to(root)
    at = Home(root, address)

    from backburner.app.home import Backburner, settings_from_environment
    from backburner.runtime.node import Terms

    settings = settings_from_environment()
    settings = replace(settings, tools_per_worker=min(settings.tools_per_worker, concurrency))
    if dead_after is not None:
        settings = replace(settings, dead_after_s=dead_after)
    queues = tuple(dict.fromkeys(queue or [NO_QUEUE]))
    for name in queues:
        if name != NO_QUEUE:
            check_queue(name, width=1)
    terms = Terms(queues, concurrency, settings.dead_after_s, listen)
    _say_what_is_logged()
    asyncio.run(_work(Backburner(at, settings), terms, tools or (), as_json=as_json))
    return exits.DONE


class _Sayer(logging.Handler):
    """Says what the application beside the node would tell its program in a log."""

    def emit(self, record: logging.LogRecord) -> None:
        """As the node says it."""
        say.message(record.getMessage())


def _say_what_is_logged() -> None:
    ours = logging.getLogger("backburner")
    if not ours.hasHandlers():  # unless somebody has chosen where it goes
        ours.addHandler(_Sayer(logging.WARNING))
        # Of a connection that is lost we say so ourselves.
        logging.getLogger("psycopg").setLevel(logging.ERROR)


async def _missing(application: "Backburner", queues: Sequence[str]) -> list[str]:
    """Those that nobody has made. Somebody may yet: it is no mistake to wait for that."""
    known = {NO_QUEUE, *(queue.name for queue in await application.queues())}
    return [name for name in queues if name not in known]


async def _work(
    application: "Backburner", terms: "Terms", modules: Sequence[str], *, as_json: bool
) -> None:
    """Processes are carried out by the node, tools and agents by the application beside it."""
    from backburner.app.tool_modules import programs_of, take_in
    from backburner.runtime.node import work
    from backburner.runtime.scribe import insist

    for module in modules:
        take_in(application, module)
    programs = programs_of(application)
    known = list(application.registry)
    tools = [*(tool.name for tool in known if tool.background), *application.registered_agents]

    def announce(name: str, probes: str | None) -> None:
        if as_json:
            queues = list(terms.queues)
            say.json_line({"node": name, "queues": queues, "tools": tools, "listens": probes})
        if probes is not None:
            say.message(f"{name} answers at {probes}/readyz")
        say.message(f"{name} takes on {', '.join([*terms.queues, *tools])}")
        for tool in known:
            if not tool.background:
                say.message(f"{tool.name} is for nobody else: it lacks background=True")

    @contextlib.asynccontextmanager
    async def beside(name: str) -> AsyncGenerator["Runs"]:
        application.known_as = name
        async with contextlib.AsyncExitStack() as opened:
            # The node has reached the database; where it is lost since, it comes back.
            await insist(lambda: opened.enter_async_context(application), say.message)
            await insist(application.runs.begin, say.message)
            for queue in await insist(lambda: _missing(application, terms.queues), say.message):
                make = f"backburner queue set {queue} --width 2 makes it"
                say.message(f"there is no queue {queue} yet: {make}")
            yield application.runs

    await work(
        application.home,
        terms,
        programs=programs,
        beside=beside,
        announce=announce,
        report=say.message,
    )
