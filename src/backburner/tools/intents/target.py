"""Which task a message means (A10): one, several, or a question back. Pure.

Reading the wrong task does little harm, so there the newest is taken. Stopping the wrong one does:
a stop goes to a task that the message leaves no doubt about, and to no other.
"""

import re
from collections.abc import Iterable, Sequence

from backburner.model.ids import PREFIX
from backburner.model.states import State
from backburner.model.task import Task, preview
from backburner.model.values import value
from backburner.tools.intents.notation import Found
from backburner.tools.intents.reading import Intent, read
from backburner.tools.intents.words import QUOTE
from backburner.work.shown import shown_work

MOST_LISTED = 5
"""Tasks that a question back names; more would not be read."""

SHORTEST_BARE_ID = 4
"""Characters of an id without its `bg_`: fewer are too easily a number or a word."""

_COMMAND_MAX_CHARS = 200
"""Of a command that are looked at: further on, a script says all sorts of words."""

_NAMES = frozenset({"NAME", "LONG", "QUOTED", "LABEL", "NUMBER"})
_STATES = {
    "ACTIVE": frozenset({State.RUNNING, State.INPUT_REQUIRED}),
    "QUEUED": frozenset({State.QUEUED}),
    "FAILED": frozenset({State.FAILED}),
    "ENDED": frozenset(state for state in State if state.terminal),
}


@value
class One:
    """The message means this task, without doubt enough for what it asks."""

    task: Task


@value
class Several:
    """The message asks about all of these, newest first; there may be none."""

    tasks: tuple[Task, ...]


@value
class Unclear:
    """It cannot be said which, or there is none: answer with this, and do nothing."""

    question: str
    """For the person who wrote the message: what is missing, and the tasks to choose from."""
    candidates: tuple[Task, ...] = ()
    """Those it may mean, newest first."""


Target = One | Several | Unclear


def resolve(text: str, tasks: Iterable[Task]) -> Target:
    """Which of ``tasks``, those of the session, the message ``text`` means.

    An id or its beginning, else words of a title, else the only one that is active. Of several the
    newest for a message that only reads; one that stops gets a question back, and so does whatever
    `classify` does not understand. A name that no task bears is never taken for another task.
    """
    newest = sorted(tasks, key=lambda task: task.seq, reverse=True)
    reading = read(text)
    if reading is None:
        return _ask(_WHICH, _active(newest, else_all=True))
    intent, found = reading.intent, reading.found
    if not newest:
        return Several(()) if intent is Intent.LIST else Unclear(_NO_TASK)
    meant = _meant(found, newest, careful=intent not in {Intent.OUTPUT, Intent.STATUS})
    if isinstance(meant, Unclear):
        return Several(()) if intent is Intent.LIST else meant
    kinds = {kind for kind, _ in found}
    if intent is Intent.LIST or (intent is Intent.STATUS and kinds & {"ALL", "MANY"}):
        return Several(tuple(meant))
    if kinds & {"ID", *_NAMES} and len(meant) == 1:
        return One(meant[0])
    if intent is Intent.STOP:
        return _to_stop(kinds, meant)
    if "OLDEST" in kinds:
        return One(meant[-1])
    return One(meant[0] if "NEWEST" in kinds else _active(meant, else_all=True)[0])


def _to_stop(kinds: set[str], meant: Sequence[Task]) -> Target:
    active = _active(meant)
    if not active:
        return Unclear(_NOTHING_RUNS)
    if len(active) == 1 or ("NEWEST" in kinds and active[0] is meant[0]):
        return One(active[0])
    if "OLDEST" in kinds and active[-1] is meant[-1]:
        return One(active[-1])
    if kinds & {"ALL", "MANY"}:
        return _ask(f"Should I stop all {len(active)} of these?", active)
    return _ask(_WHICH, active)


def _meant(found: Found, newest: Sequence[Task], *, careful: bool) -> Sequence[Task] | Unclear:
    """Those that everything said in the message is true of; never an empty list."""
    meant, offered = newest, _active(newest, else_all=True)
    for kind, said in found:
        if kind == "ID":
            meant = _with_id(said, meant)
            if not meant:
                return _ask(f"No task here has an id that begins with {said}.", offered)
            if len(meant) > 1:
                return _ask(f"{len(meant)} tasks have an id that begins with {said}.", meant)
        elif kind in _NAMES:
            meant = _with_name(kind, said, meant, careful=careful)
            if not meant:
                return _ask(f"No task here is called {_shown(said.lstrip(QUOTE))}.", offered)
        elif kind in _STATES:
            meant = [task for task in meant if task.state in _STATES[kind]]
            if not meant:
                return _ask(f"There is no {said} task here.", offered)
    return meant


def _active(tasks: Sequence[Task], *, else_all: bool = False) -> Sequence[Task]:
    active = [task for task in tasks if not task.state.terminal]
    return tasks if else_all and not active else active


def _with_id(said: str, tasks: Sequence[Task]) -> Sequence[Task]:
    exact = [task for task in tasks if task.id.casefold() == said]
    return exact or [task for task in tasks if task.id.casefold().startswith(said)]


def _with_name(kind: str, said: str, tasks: Sequence[Task], *, careful: bool) -> Sequence[Task]:
    """By id, else by title, else by command: what says it more plainly comes first."""
    name = said.lstrip('"#%')
    exact = [task for task in tasks if task.id.casefold() == name]
    if exact:
        return exact
    if kind == "LABEL" and len(name) >= SHORTEST_BARE_ID:
        begun = [task for task in tasks if task.id.casefold().startswith((name, f"{PREFIX}{name}"))]
        if begun:
            return begun
    titled = [task for task in tasks if _says(name, task.title)]
    if titled or kind == "NUMBER":  # numbers in a command are ports and sizes
        return titled
    running = [task for task in tasks if _says(name, _command(task))]
    if running or careful:
        return running
    return [task for task in tasks if name in task.title.casefold()]


def _says(name: str, text: str) -> bool:
    """Whether ``name`` stands in ``text`` as a word or words, be it one or many of them."""
    stem = name.removesuffix(" run").replace("_", " ")
    if len(stem) > SHORTEST_BARE_ID:
        stem = stem.removesuffix("s")
    plain = " ".join(text.casefold().replace("_", " ").split())
    return re.search(rf"(?<!\w){re.escape(stem)}s?(?!\w)", plain) is not None


def _command(task: Task) -> str:
    return preview(shown_work(task.spec), _COMMAND_MAX_CHARS)


_NO_TASK = "There is no background task in this session."
_WHICH = "Which task do you mean? Say its id, or a word of its title."
_NOTHING_RUNS = "No background task is running."


def _ask(question: str, candidates: Sequence[Task]) -> Unclear:
    lines = [question, *(f"- {_named(task)}" for task in candidates[:MOST_LISTED])]
    if len(candidates) > MOST_LISTED:
        lines.append(f"- and {len(candidates) - MOST_LISTED} more")
    return Unclear("\n".join(lines), tuple(candidates))


def _named(task: Task) -> str:
    state = task.state.replace("_", " ")
    return f"{task.id} {_shown(task.title)} ({state})"


def _shown(text: str) -> str:
    """On one line that is safe to print: titles and messages come from anybody."""
    from backburner.work.log.fold import strip_controls  # seldom needed, and slow to load

    return preview(strip_controls(text))
