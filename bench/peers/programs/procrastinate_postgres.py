# pyright: basic, reportMissingImports=false
"""Procrastinate on Postgres: a worker for each core with 64 jobs at once, told of them by NOTIFY.

Finished means that the job's row says so. One worker was slower, and so were four connections.
"""

import asyncio

from procrastinate import App, PsycopgConnector

from bench.peers.programs.rounds import CALLERS, CORES, PLACE, measure_async, worker

_LEFT = "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"

app = App(connector=PsycopgConnector(conninfo=PLACE, min_size=4, max_size=16))


@app.task(queue="bench")
async def noop() -> bool:
    """Do nothing."""
    return True


def main(count: int) -> None:
    """One round."""
    asyncio.run(_round(count))


async def _round(count: int) -> None:
    async with app.open_async():
        if await app.check_connection_async():
            await app.connector.execute_query_async("TRUNCATE procrastinate_jobs CASCADE")
        else:
            await app.schema_manager.apply_schema_async()

        async def submit(_: int) -> None:
            await noop.defer_async()

        async def finished(_: int) -> bool:
            return (await app.connector.execute_query_one_async(_LEFT))["jobs"] == 0

        place = ("--log-level", "error", "--app", f"{__name__}.app")
        options = ("--concurrency", str(CALLERS))
        with worker("procrastinate", *place, "worker", *options, processes=CORES):
            await measure_async(count, submit, finished)
