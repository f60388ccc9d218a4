"""Our own parts: the programs that we stand on, the keeper, what it could not deliver."""

import sys
import time

from backburner.cli.checks.finding import Finding, Level
from backburner.cli.checks.home import active_tasks
from backburner.cli.place import Place
from backburner.model.clock import format_duration
from backburner.model.errors import BackburnerError
from backburner.runtime.edition import UNKNOWN, ours
from backburner.runtime.election import Sitting, sitting_keeper
from backburner.runtime.glance import Glance
from backburner.store.sqlite.connection import refuse_unsafe_sqlite, sqlite_version


def version(at: Place) -> Finding:
    """Ours."""
    edition = ours()
    number = f", record format {edition.format}"  # a database says its own
    text = f"{edition.version}{'' if at.home.shared else number}"
    return Finding("backburner", Level.OK, text)


def python() -> Finding:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):  # noqa: UP036 - a doctor looks also where nobody should be ill
        return Finding("python", Level.FAIL, version, "install Python 3.11 or newer")
    return Finding("python", Level.OK, version)


def sqlite() -> Finding:
    """The SQLite that apsw brought."""
    version = sqlite_version()
    try:
        refuse_unsafe_sqlite(version)
    except BackburnerError as error:
        return Finding("sqlite", Level.FAIL, error.message, error.remedy)
    return Finding("sqlite", Level.OK, version)


def keeper(at: Place) -> Finding:
    """The process that looks after the tasks, and its guardian."""
    sitting = sitting_keeper(at.home)
    if sitting is None:
        return _no_keeper(at)
    pid = sitting.pid
    if pid <= 0:
        return Finding("keeper", Level.OK, "runs in another container that shares this home")
    import psutil

    try:
        age = format_duration(time.time() - psutil.Process(pid).create_time())
    except (psutil.Error, ValueError):
        return _no_keeper(at)  # it left at this moment
    stays = ", stays" if sitting.edition.stays else ""
    if sitting.edition != ours(stays=sitting.edition.stays):
        return _of_another_edition(sitting)
    # Not its parent: a guardian that took the place of one that died is none.
    words = {"backburner.keeper.guardian", str(at.home.root)}
    for process in psutil.process_iter(["cmdline"]):
        if words <= set(process.info["cmdline"] or ()):
            text = f"pid {pid} for {age}, guardian pid {process.pid}{stays}"
            return Finding("keeper", Level.OK, text)
    return Finding(
        "keeper",
        Level.WARN,
        f"pid {pid}, without a guardian",
        "it starts one within a second",
        "nobody would start it again if it died",
    )


def _of_another_edition(sitting: Sitting) -> Finding:
    known = sitting.edition != UNKNOWN
    version = f"Backburner {sitting.edition.version}" if known else "an older Backburner"
    text = f"pid {sitting.pid}, of {version}"
    if not ours().may_replace(sitting.edition):
        return Finding("keeper", Level.OK, f"{text}, which is newer than this one")
    return Finding(
        "keeper",
        Level.WARN,
        text,
        "the next start, or backburner ls with tasks running, puts a newer one in its place",
        "it does not know what newer programs ask for",
    )


def _no_keeper(at: Place) -> Finding:
    with Glance(at.home) as glance:
        waiting = glance.active_count()
    if not waiting:
        return Finding("keeper", Level.OK, "not running: there is nothing to do")
    return Finding(
        "keeper",
        Level.WARN,
        f"not running, with {active_tasks(waiting)}",
        "backburner ls starts one",
        "nobody enforces their limits, or tells how they end",
    )


def deliveries(at: Place) -> Finding:
    """What channels gave up delivering."""
    with Glance(at.home) as glance:
        dead = glance.dead_letters(at.every_session)
    if not dead:
        return Finding("deliveries", Level.OK, "no dead letters")
    letters = f"{dead} signal" if dead == 1 else f"{dead} signals"
    return Finding(
        "deliveries",
        Level.WARN,
        f"{letters} could not be delivered through a channel",
        "backburner signals --failed lists those of a session, --resend KEY sends one again",
        "nobody was told what they say, unless through the inbox",
    )
