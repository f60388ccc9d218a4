"""What becomes of work whose node has died: taken up again where safe, else orphaned, told once.

Who is dead is said by the engine's heartbeats. Every process that has the record open looks, and
who comes second changes nothing: each step is guarded by the attempt, and by where the look found
it. The attempt alone would not do: what had not begun is given to another one under the same.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection

from backburner.model.ending import Ending
from backburner.model.errors import StoreAway, StoreError
from backburner.model.home import Home
from backburner.model.states import ErrorKind, State
from backburner.runtime.children import stop_left_children
from backburner.runtime.contact import Contact
from backburner.runtime.runs.recovery import why_not_again
from backburner.store.engine import Job, Silence
from backburner.store.postgres.node import NodeStore

_log = logging.getLogger("backburner.nodes")

_SILENT = "its machine was not heard of for a while"
_RESTARTED = "its worker was started anew while it ran"
_MAY_RUN_ON = "nobody knows whether what it had left behind runs on"
_ASKED_TO_STOP = "somebody asked for its end, and nobody knows whether that came to pass"


async def see_to_the_dead(
    store: NodeStore,
    home: Home,
    contact: Contact,
    own: Collection[tuple[str, int]],
    report: Callable[[str], None],
) -> None:
    """Once. ``own`` are the attempts of this process, which lives, whatever its heart says."""
    await store.prove_contact()  # first: else nobody could be heard of, who is asked for next
    dead = contact.dead(await store.silent(contact.silent_s, contact.lasted_s()))
    theirs = [each for each in dead if (each.job.task, each.job.attempt) not in own]
    for each in theirs:
        await _see_to_one(store, each, report)
    if theirs:
        await stop_left_children(store, home)  # of agents that ended with their node
    await store.forget_nodes(contact.lasted_s())


async def keep_seeing_to_the_dead(
    store: NodeStore, home: Home, silent_s: float, look: Callable[[], Awaitable[None]]
) -> None:
    """For as long as a program has the record open that may carry out nothing itself.

    ``look`` is what else it looks at now and then.
    """
    contact = Contact(silent_s, lambda: store.breaks)
    while True:
        await asyncio.sleep(silent_s / 3)
        try:
            await store.check_format()
            await look()
            own = {(task.id, task.attempt) for task in await store.kept()}
            await see_to_the_dead(store, home, contact, own, _log.warning)
        except StoreError:
            pass  # whoever uses the record hears of it
        except Exception as error:  # noqa: BLE001 - the next look may do
            _log.warning(
                "a look at the others came to nothing: %s: %s", type(error).__name__, error
            )


async def take_over(store: NodeStore, home: Home, report: Callable[[str], None]) -> None:
    """Before this node begins: an earlier process of its name is dead, and what it carried out in

    itself died with it. Nobody has to wait until it was silent for long enough.
    """
    await store.begin_again()
    left = [task for task in await store.kept() if not task.state.terminal]
    for task in left:
        begun = task.state is not State.QUEUED
        seen = Silence(Job(task.id, task.attempt), 0, dead=True, node=store.node, begun=begun)
        await _see_to_one(store, seen, report, restarted=True)
    if left:
        await stop_left_children(store, home)


async def _see_to_one(
    store: NodeStore, seen: Silence, report: Callable[[str], None], *, restarted: bool = False
) -> None:
    try:
        await _take_from_the_dead(store, seen, report, restarted=restarted)
    except StoreAway:
        raise
    except Exception as error:  # noqa: BLE001 - the others must not wait for this one
        report(f"{seen.job.task}: cannot be seen to yet: {type(error).__name__}: {error}")


async def _take_from_the_dead(
    store: NodeStore, seen: Silence, report: Callable[[str], None], *, restarted: bool
) -> None:
    """Of a machine that is only silent nobody knows what became of its work, nor of a stop."""
    job, reason = seen.job, _RESTARTED if restarted else _SILENT
    task = await store.get(job.task)
    if task is None or task.attempt != job.attempt or task.state.terminal:
        await store.close_job(job)
        if seen.begun and await store.give_up_leftovers_of(seen, f"{reason}; {_MAY_RUN_ON}"):
            report(f"{job.task}: {reason}; {_MAY_RUN_ON}")
        return
    if not seen.begun:
        if await store.give_back_from(seen):
            report(f"{job.task}: {reason}; it had not begun")
        return
    stopped = task.stop is not None
    refused = _ASKED_TO_STOP if stopped and not restarted else why_not_again(task)
    if refused is None:
        is_done = await store.requeue_from(seen, reason)
    elif stopped and restarted:
        is_done = await store.finish_from(seen, Ending.canceled())
    else:
        orphaned = Ending.failed(ErrorKind.ORPHANED, f"{reason}; {refused}")
        is_done = await store.finish_from(seen, orphaned)
    if is_done:  # else others have seen to it, or it is over
        report(f"{job.task}: {reason}; {refused or 'it is taken up again'}")
        await store.close_job(job)
