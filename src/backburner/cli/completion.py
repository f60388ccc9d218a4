"""What can stand at a place in a command line: ids with their titles, sessions, queues, channels.

A person waits for it between two keys: it reads the record through a reader that only reads, needs
neither an event loop nor typer, and never complains, because a shell would draw that into the line
that is being typed.
"""

import sys
from collections.abc import Iterable, Iterator

from backburner.cli import phrases
from backburner.cli.textwidth import clean, cut
from backburner.model.schedule import Schedule
from backburner.model.states import ACTIVE
from backburner.model.task import Task

OPTION = "--candidates"
"""`backburner completion --candidates KIND [--home DIR] [--session NAME] -- WORD`."""
MOST = 50
_LOOKED_THROUGH = 500
_TITLE_COLUMNS = 60

Candidate = tuple[str, str]
"""What is typed, and what it means."""


def answer(argv: list[str]) -> int:
    """Print the candidates, one a line, each with a tab and its meaning."""
    try:
        for word, meaning in candidates(argv):
            print(f"{word}\t{meaning}" if meaning else word)
        sys.stdout.flush()
    except Exception:  # noqa: BLE001 - see above: no candidates is all that there is to say
        return 1
    return 0


def candidates(argv: list[str]) -> list[Candidate]:
    """What fits the word; ``argv`` is what stands after the option."""
    kind, given, word = _read(argv)
    from backburner.cli.place import place
    from backburner.runtime.glance import reader_if_current

    # An empty value is what a shell hands on of a variable that is not set.
    at = place(given.get("--home") or None, given.get("--session") or None)
    reader = reader_if_current(at.home)
    if reader is None:
        return []
    try:
        if kind == "sessions":
            names = (
                task.session for task in reader.newest(at.every_session, limit=_LOOKED_THROUGH)
            )
            return _starting(names, word)
        if kind == "queues":
            return _starting((queue.name for queue in reader.queues()), word)
        if kind == "schedules":
            return _schedules(reader.schedules(at.scope), word)
        if kind == "channels":
            return _starting((channel.name for channel in reader.channels()), word)
        by_id = reader.find(word, at.scope, _LOOKED_THROUGH) if word else []
        recent = [
            *reader.newest(at.scope, limit=_LOOKED_THROUGH, states=ACTIVE),
            *reader.newest(at.scope, limit=_LOOKED_THROUGH),
        ]
    finally:
        reader.close()
    return _tasks(by_id, recent, word, active=kind == "active")


def _read(argv: list[str]) -> tuple[str, dict[str, str], str]:
    kind, *rest = argv
    words = iter(rest)
    given: dict[str, str] = {}
    for option in words:
        if option == "--":
            break
        given[option] = next(words)
    return kind, given, next(words, "")


def _starting(names: Iterable[str], word: str) -> list[Candidate]:
    found = dict.fromkeys(name for name in names if name.startswith(word) and _plain(name))
    return [(name, "") for name in found][:MOST]


def _schedules(schedules: list[Schedule], word: str) -> list[Candidate]:
    """Those that have not ended and whose id begins so, or that have it in their title."""
    wanted = word.casefold()
    return [
        (each.id, f"{each.state}, {cut(clean(each.title), _TITLE_COLUMNS)}")
        for each in schedules
        if not each.state.ended and (each.id.startswith(word) or wanted in each.title.casefold())
    ][:MOST]


def _tasks(by_id: list[Task], recent: list[Task], word: str, *, active: bool) -> list[Candidate]:
    """Those whose id begins so; else, those that have it in their title."""
    wanted = word.casefold()
    titled = (task for task in recent if wanted in task.title.casefold())
    fitting = list(_each_once(by_id or titled, active=active))[:MOST]
    return [
        (task.id, f"{_state(task)}, {cut(clean(task.title), _TITLE_COLUMNS)}") for task in fitting
    ]


def _each_once(tasks: Iterable[Task], *, active: bool) -> Iterator[Task]:
    seen: set[str] = set()
    for task in tasks:
        runs = not task.state.terminal or task.leftovers > 0
        if task.id not in seen and (runs or not active):
            seen.add(task.id)
            yield task


def _state(task: Task) -> str:
    if task.state.terminal:
        return clean(phrases.outcome(task))
    return task.state.value.replace("_", " ")


def _plain(name: str) -> bool:
    """Whether a shell takes it as it is: a name with a blank would become two words."""
    return name.isprintable() and not set(name) & set(" \t'\"\\$`&|;<>()*?[]{}~#!")
