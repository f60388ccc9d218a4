"""`backburner doctor`."""

from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import place

EXAMPLES = (
    "backburner doctor",
    "backburner doctor --home /srv/backburner --json",
    "backburner doctor --home postgresql://backburner@db/work",
)


def command(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """Check this machine and this home; of a record of many machines, the database and the workers.

    Can the promises be kept here? Each check is ok, warn (it works, and not as well as it could)
    or fail; exits with 1 when one fails. What is not well is said with why it matters and what to
    do: also what would end tasks at a logout or with a container. Nothing that it tries out stays.
    """
    from backburner.cli.checks import examine
    from backburner.cli.checks.printing import print_findings

    return print_findings(examine(place(home, session)), as_json=as_json)
