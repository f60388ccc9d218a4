"""Forgetting: ended tasks go by age or for room, with their folders, events and signals.

Never touched: what has not ended, what left processes behind, what a task that is still to start
waits for, what a channel has yet to deliver. For room the oldest go first, and those whose end
nobody has been told yet only when no others are left.
"""

import asyncio
import contextlib
import itertools
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.signals import SignalState
from backburner.model.task import Task
from backburner.model.values import value
from backburner.runtime.launches import YOUNG_S, discard_unneeded
from backburner.store.protocol import Scope, Store
from backburner.work import handover
from backburner.work.process.tree import Tree, populated

PRUNE_EVERY_S = 3600.0
_BATCH = 200
_BLOCK = 512
"""The unit in which the kernel counts what a file takes on the disk."""

_UNTOLD = (SignalState.PENDING, SignalState.CLAIMED, SignalState.FAILED)


@value
class Rule:
    """What is to go."""

    before: Instant | None = None
    """What ended before this time."""
    max_size: int | None = None
    """The oldest, until the folders of the tasks take no more bytes on the disk than this."""
    artifacts: str = ""
    """Where files of tasks lie that are to go too, in a shared record."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        older_than_s: float | None,
        max_size: int | None,
        *,
        now: Instant,
        here: bool = True,
    ) -> "Rule":
        """What was asked for; the settings where nothing was. ``now`` is that of the store.

        What tasks take is known where their folders are: UsageError where that is not ``here``.
        """
        if max_size is not None and not here:
            raise UsageError(
                "the folders of these tasks are on other machines",
                remedy="prune by age: --older-than 7d, older_than=7 * 86400",
            )
        if older_than_s is None and max_size is None:
            older_than_s = settings.retention_s
            max_size = (settings.max_size or None) if here else None
        before = None if older_than_s is None else now - round(older_than_s * clock.SECOND)
        return cls(before, max_size, settings.artifacts)


@value
class Doomed:
    """A task that is to go, and what its folders take."""

    task: Task
    size: int


@value
class Pruned:
    """What has gone."""

    count: int
    size: int


async def prune(store: Store, home: Home, rule: Rule, scope: Scope | None = None) -> Pruned:
    """Forget what the rule says, in one scope or everywhere.

    The record goes first: a crash in between leaves a folder without a task, which the sweep of
    the next prune removes, and never a task without its output.
    """
    await _sweep(store, home)
    count = size = 0
    batch: list[Doomed] = []

    async def forget() -> None:
        nonlocal count, size
        attempts = {doomed.task.id: doomed.task.attempt for doomed in batch}
        sizes = {doomed.task.id: doomed.size for doomed in batch}
        folders = {
            task_id: [home.attempt(task_id, number).path for number in range(1, last + 1)]
            for task_id, last in attempts.items()
        }
        if home.shared:  # where others may have ended what runs here
            await asyncio.to_thread(_leave_what_runs, home, folders)
        gone: list[str] = []

        def throw_away(ids: Sequence[str]) -> None:
            gone.extend(ids)
            for task_id in ids:
                for path in folders.get(task_id, ()):
                    _to_trash(home, path)

        count += await store.forget(list(attempts), throw_away)
        size += sum(sizes[task_id] for task_id in gone)
        await asyncio.to_thread(_empty_trash, home)
        batch.clear()

    async for doomed in choose(store, home, rule, scope):
        batch.append(doomed)
        if len(batch) == _BATCH:
            await forget()
    if batch:
        await forget()
    if home.shared and rule.artifacts:
        from backburner.runtime.artifacts import remove_left  # needs an extra

        await remove_left(store, rule.artifacts)
    return Pruned(count, size)


async def prune_now_and_then(
    store: Store, home: Home, settings: Settings, report: Callable[[str], None]
) -> None:
    """Once an hour, until cancelled."""
    while True:
        try:
            rule = Rule.of(settings, None, None, now=store.now(), here=not home.shared)
            pruned = await prune(store, home, rule)
            if pruned.count:
                report(f"pruned {pruned.count} tasks, {pruned.size} bytes")
        except Exception as error:  # noqa: BLE001 - the next one may do
            report(f"pruning failed: {type(error).__name__}: {error}")
        await asyncio.sleep(PRUNE_EVERY_S)


async def choose(
    store: Store, home: Home, rule: Rule, scope: Scope | None = None
) -> AsyncIterator[Doomed]:
    """What the rule says, in the order in which it goes; nothing is changed."""
    sizes = await _sizes(store, home, scope) if rule.max_size is not None else {}
    too_much = sum(sizes.values()) - (rule.max_size or 0)
    chosen: set[str] = set()
    if rule.before is not None:
        async for task in _ended(store, rule.before, scope):
            size = await asyncio.to_thread(_size_of, home, task)
            too_much -= size
            chosen.add(task.id)
            yield Doomed(task, size)
    if rule.max_size is None:
        return
    for untold in (False, True):
        if too_much <= 0:
            return
        async for task in _ended(store, store.now() + 1, scope):
            size = sizes.get(task.id, 0)
            if not size or task.id in chosen or (task.signal_state in _UNTOLD) is not untold:
                continue
            too_much -= size
            chosen.add(task.id)
            yield Doomed(task, size)
            if too_much <= 0:
                return


async def _ended(store: Store, before: Instant, scope: Scope | None) -> AsyncIterator[Task]:
    last: Task | None = None
    while tasks := await store.prunable(before, scope, _BATCH, after=last):
        for task in tasks:
            yield task
        last = tasks[-1]


async def size_of_all(store: Store, home: Home, scope: Scope | None = None) -> int:
    """What the folders of all tasks take, of those in scope."""
    return sum((await _sizes(store, home, scope)).values())


async def _sizes(store: Store, home: Home, scope: Scope | None) -> dict[str, int]:
    """By task, what its folders take; of those in scope, whether they have ended or not."""
    sizes = await asyncio.to_thread(_all_sizes, home)
    if scope is None:
        return sizes
    return {
        task_id: size
        for task_id, size in sizes.items()
        if await store.get(task_id, scope) is not None
    }


def _all_sizes(home: Home) -> dict[str, int]:
    sizes: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(home.tasks):
            task_id = name.partition(".")[0]
            sizes[task_id] = sizes.get(task_id, 0) + size_on_disk(f"{home.tasks}/{name}")
    return sizes


def _size_of(home: Home, task: Task) -> int:
    folders = (home.attempt(task.id, attempt) for attempt in range(1, task.attempt + 1))
    return sum(size_on_disk(folder.path) for folder in folders)


def size_on_disk(folder: str) -> int:
    """The bytes that a folder and all in it take: not those that files seem to have, which for a

    log with a hole in it may be a thousand times as many.
    """
    total = 0
    with contextlib.suppress(OSError):
        total += os.lstat(folder).st_blocks * _BLOCK
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):  # it went while we looked
                total += os.lstat(f"{path}/{name}").st_blocks * _BLOCK
    return total


async def _sweep(store: Store, home: Home) -> None:
    """Remove what no task owns: folders of forgotten tasks, launches of starts that never came."""
    paths: dict[str, list[str]] = {}
    for path in _old_entries(home.tasks):
        task_id = os.path.basename(path).partition(".")[0]
        if await store.get(task_id) is None:
            paths.setdefault(task_id, []).append(path)
    await asyncio.to_thread(_leave_what_runs, home, paths)
    if paths:
        await store.unknown(list(paths), _thrower(home, paths))
    await asyncio.to_thread(_empty_trash, home)
    await discard_unneeded(store, home)
    handover.tidy(home)


def _leave_what_runs(home: Home, paths: dict[str, list[str]]) -> None:
    """By its folder a machine that was away finds what still runs there of a forgotten task. The

    sweep has it when nothing does.
    """
    trees: list[Tree] = []
    for path in itertools.chain(*paths.values()):
        task_id, _, attempt = os.path.basename(path).partition(".")
        if attempt.isdecimal():
            trees.append(Tree(str(home.root), task_id, int(attempt), None))
    if trees:
        for tree in populated(trees):
            paths.pop(tree.task_id, None)


def _thrower(home: Home, paths: dict[str, list[str]]) -> Callable[[Sequence[str]], None]:
    def throw_away(ids: Sequence[str]) -> None:
        for task_id in ids:
            for path in paths[task_id]:
                _to_trash(home, path)

    return throw_away


def _to_trash(home: Home, path: str) -> None:
    """Out of the way in one step, while the id cannot be used again: to remove it takes longer."""
    with contextlib.suppress(OSError):  # there is none; else the next sweep finds it
        try:
            os.rename(path, f"{home.trash}/{secrets.token_hex(8)}")
        except FileNotFoundError:
            if os.path.exists(path):
                os.makedirs(home.trash, 0o700, exist_ok=True)
                os.rename(path, f"{home.trash}/{secrets.token_hex(8)}")


def _empty_trash(home: Home) -> None:
    shutil.rmtree(home.trash, ignore_errors=True)


def _old_entries(folder: str) -> list[str]:
    """Entries are made shortly before their task is written: a young one is not an orphan."""
    try:
        with os.scandir(folder) as entries:
            return [
                entry.path for entry in entries if time.time() - entry.stat().st_mtime > YOUNG_S
            ]
    except FileNotFoundError:
        return []
