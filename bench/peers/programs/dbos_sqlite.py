# pyright: basic, reportMissingImports=false
"""DBOS on SQLite: workflows in the threads of the application itself, as it comes.

Each caller waits for the end of its workflow before it starts the next, as ours do: to start them
all at once was slower, and so were coroutines.
"""

from dbos import DBOS

from bench.peers.programs.rounds import PLACE, measure


@DBOS.workflow()
def noop() -> bool:
    """Do nothing."""
    return True


def main(count: int) -> None:
    """One round."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{PLACE}",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    try:
        measure(count, lambda _: DBOS.start_workflow(noop).get_result(), lambda _: True)
    finally:
        DBOS.destroy()
