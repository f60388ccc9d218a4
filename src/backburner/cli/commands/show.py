"""`backburner show`."""

from typing import TYPE_CHECKING

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption, TaskArgument
from backburner.cli.place import act, place

if TYPE_CHECKING:
    from backburner.app import Backburner, Session

EXAMPLES = ("backburner show bg_7k2m", "backburner show --json bg_7k2m | jq .processes")


def command(
    id: TaskArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Show one task: state, processes, output, events, signals.

    ID is the id of a task, or enough of it. Of the output the last lines are shown; `logs` has all.
    """

    async def work(backburner: "Backburner", session: "Session") -> int:
        from backburner.cli.portrait import look_at

        portrait = await look_at(backburner, await session.task(id))
        if as_json:
            say.document(portrait.document())
        else:
            for line in portrait.lines():
                say.data(line)
        return exits.DONE

    return act(place(home, session), work)
