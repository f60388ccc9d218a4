"""The end of a life: everything is brought to its end, and the promise is looked at."""

from backburner import Kind, State, Task
from tests.faults.victims import processes_with
from tests.runtime.machine import promise
from tests.runtime.machine.grounds import TIDY_S
from tests.runtime.machine.known import Known
from tests.runtime.machine.life import PATIENCE_S, SESSIONS, Life
from tests.waiting import wait_until


def finish(life: Life) -> None:
    """Bring everything to its end, then look at the promise."""
    life.note("finish")
    for known in left(life):
        if known.behaviour.end is None or known.stop_asked:
            life.stop(known, force=True, wait=False)
    wait_until(
        lambda: is_over(life), timeout=PATIENCE_S, message=lambda: f"never end: {left(life)}"
    )
    life.collect_stops(cancel=False)
    tasks = life.look()
    for name in SESSIONS:
        life.acknowledge(name, most=10_000)
    for task in tasks.values():
        life.run(check(life, task))
    for name in SESSIONS:
        own = {key: task for key, task in tasks.items() if life.known[key].session == name}
        told = life.run(life.session(name).told(limit=10_000))
        promise.check_told(life.known, own, told, deleted=name in life.ended)
    check_leavings(life, set(tasks))


def left(life: Life) -> list[Known]:
    """What has not been seen to have ended."""
    return [known for known in life.known.values() if known.open]


def is_over(life: Life) -> bool:
    """Whether all have ended; what waits for something gets it."""
    assert not life.failed_stops(), life.failed_stops()
    tasks = life.look()
    for known in left(life):
        task = tasks.get(known.id)
        if task is None:  # its start was never made
            del life.known[known.id]
        elif not known.stop_asked and known.behaviour.end is not None:
            match known.behaviour.need:
                case "gate":
                    waits = not known.provided
                case "message":
                    waits = not known.told
                case _:
                    waits = task.state is State.INPUT_REQUIRED
            if waits:
                life.provide(known)
    return not left(life)


async def check(life: Life, task: Task) -> None:
    """One task."""
    known = life.known[task.id]
    events = [event async for event in task.events(follow=False)]
    promise.check_history(task, events)
    promise.check_end(known, task, sees_deaths=life.ground.sees_deaths)
    promise.check_runs(known, task, events, life.folder)
    await check_files(life, known, task)
    if known.behaviour.kind is Kind.AGENT:
        for child in await life.session(task.id).tasks():
            await child.wait(TIDY_S)
            assert child.state is State.CANCELED, (known, child.record)
            await check_files(life, known, child)


async def check_files(life: Life, known: Known, task: Task) -> None:
    """Wherever it has left any."""
    for files in await life.ground.files_of(task):
        promise.check_files(known, task, files)


def check_leavings(life: Life, ids: set[str]) -> None:
    """No process, no environment of a task that has ended, nothing of an application that died."""
    wait_until(
        lambda: not processes_with(life.seconds), timeout=TIDY_S, message="a process is left"
    )
    life.run(life.ground.nothing_is_left(life.bb.store, ids, 1 + len(life.applications)))
