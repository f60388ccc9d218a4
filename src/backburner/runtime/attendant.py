"""What goes with a job while it runs: reading its report, matching its output, seeing it ready."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

from backburner.model.ending import Ending


class Attendant(Protocol):
    """Attends to one job. A fault of it is not the job's: it is reported, and the job goes on."""

    def look(self) -> None:
        """Something in the job's folder has changed, or may have; at most every 10 ms."""
        ...

    async def attend(self) -> None:
        """Do what has to be done while the job runs; cancelled at its end."""
        ...

    async def conclude(self, ending: Ending) -> Ending:
        """The job has ended, and the record does not say so yet: a last look. Answers the ending,

        amended with what only this attendant knows.
        """
        ...


@contextlib.asynccontextmanager
async def attending(
    attendants: Sequence[Attendant], report: Callable[[str], None]
) -> AsyncGenerator[None]:
    """While this lasts, they attend."""

    async def guarded(attendant: Attendant) -> None:
        try:
            await attendant.attend()
        except Exception as error:  # noqa: BLE001 - the job must not end for it
            report(f"{type(attendant).__name__}: {type(error).__name__}: {error}")

    tasks = [asyncio.create_task(guarded(attendant)) for attendant in attendants]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def conclude(
    attendants: Sequence[Attendant], ending: Ending, report: Callable[[str], None]
) -> Ending:
    """The ending, after each has had its last look."""
    for attendant in attendants:
        try:
            ending = await attendant.conclude(ending)
        except Exception as error:  # noqa: BLE001 - the job has ended all the same
            report(f"{type(attendant).__name__}: {type(error).__name__}: {error}")
    return ending
