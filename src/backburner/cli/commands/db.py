"""`backburner db`."""

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import Place, place

HELP = """Bring the record up to date, and check it.

Whoever opens a record brings it to the newest shape. Of a database that many machines share it may
be better done once, before they are upgraded one after another.
"""

EXAMPLES = (
    "backburner db migrate --home postgresql://backburner@db/work",
    "backburner db check --json",
)

Done = tuple[int, int, int, list[str], list[str]]
"""The format before and after, the oldest program that may go on; what was applied, and granted."""


def migrate(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """Bring the record to the newest shape, and say what was done.

    Under the lock of its writers: who writes meanwhile waits. Done again, it changes nothing.
    """
    at = place(home, session)
    migrated = _migrated_database(at) if at.home.shared else _migrated(at)
    before, after, oldest, applied, granted = migrated
    if as_json:
        say.document(
            {"from": before, "to": after, "oldest": oldest, "applied": applied, "granted": granted}
        )
    elif applied or granted:
        for name in applied:
            say.data(name)
        for name in granted:
            say.data(f"granted: {name}")
        if applied:
            say.message(f"{at.home.shown} has format {after} now; it had {before or 'none'}")
    else:
        say.message(f"{at.home.shown} has format {after}: there was nothing to do")
    return exits.DONE


def check(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """Say whether the record has the newest shape, who may go on with it, and whether it is whole.

    Reads all of it, and changes nothing. Exits with 1 where something is wrong.
    """
    from backburner.cli.checks.printing import print_findings
    from backburner.cli.checks.record import examine_record

    return print_findings(examine_record(place(home, session).home), as_json=as_json)


VERBS = {"migrate": migrate, "check": check}


def _migrated_database(at: Place) -> Done:
    from backburner.runtime.home import check_database_installed

    check_database_installed()
    from backburner.store.postgres.checkup import bring_up_to_date

    done = bring_up_to_date(at.home.address)
    return done.before, done.after, done.oldest, done.applied, done.granted


def _migrated(at: Place) -> Done:
    from backburner.runtime.glance import bring_up_to_date
    from backburner.store.sqlite import checkup

    before = checkup.format_of(at.home.database)
    bring_up_to_date(at.home)
    after = checkup.format_of(at.home.database)
    # An older program refuses a file that is newer than it is.
    return before, after, after, checkup.missing(before), []
