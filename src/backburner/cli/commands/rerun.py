"""`backburner rerun`."""

from typing import TYPE_CHECKING

from backburner.cli.commands.run import print_start
from backburner.cli.options import HomeOption, JsonOption, SessionOption, TaskArgument
from backburner.cli.place import act, place

if TYPE_CHECKING:
    from backburner.app import Backburner, Session

EXAMPLES = ("backburner rerun bg_7k2m", "backburner wait $(backburner rerun bg_7k2m)")


def command(
    id: TaskArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Run the command of a task again, as a new task.

    ID is the id of a task, or enough of it. Prints the new id. Title, folder, queue, retries,
    limits and the variables given with --env are the same; all other variables are those of here.
    It waits for no other task. A variable whose value was not kept, because its name says that it
    is a secret, has to be given again with `run`.
    """

    async def work(_: "Backburner", session: "Session") -> int:
        task = await session.task(id)
        return print_start(await task.rerun(), as_json=as_json)

    return act(place(home, session), work)
