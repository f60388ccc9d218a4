"""How a chat speaks of tasks: their start, how they stand, their end, their questions. Pure.

Texts are plain, with code blocks as the only markup. What comes from a job is shown as code, where
it can neither look like words of ours nor end the block that it stands in.
"""

import json
from typing import Any, cast

from backburner.gateway.markup import Block, fenced
from backburner.gateway.platform import ACTION_BYTES, Button
from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.questions import Question
from backburner.model.redaction import redact_text
from backburner.model.states import Kind, State
from backburner.model.task import Progress, Task, preview
from backburner.work.log.fold import strip_controls

STOP = "stop"
OUTPUT = "output"
ANSWER = "answer"
CHOOSE = "choose"

_REASON_CHARS = 1_000
_BAR = 10
_CHOICES_MAX = 5
_CHOICE_CHARS = 30
"""Of an answer that fits on a button."""


def started(task: Task) -> str:
    """B2: that it started, what it is, and its id on a line of its own."""
    return f'Started in the background: "{titled(task)}"\nTask ID:\n{task.id}'


def titled(task: Task) -> str:
    """What it is called, on one line that is safe to show."""
    return preview(strip_controls(task.title))


def live(task: Task) -> str:
    """The same while it goes on, and when it has ended."""
    return "\n".join([started(task), *_standing(task)])


def _standing(task: Task) -> list[str]:
    if task.state.terminal:
        return [f"{_mark(task.state)} {_ended(task)} after {took(task)}"]
    lines: list[str] = []
    if task.progress is not None:
        lines.append(bar(task.progress))
    if task.question is not None:
        lines.append("❓ waits for an answer")
    elif task.detail:
        lines.append(f"… {preview(strip_controls(task.detail), 200)}")
    elif task.state is State.QUEUED and task.wait is not None:
        lines.append("… waits for its start")
    return lines


def bar(progress: Progress) -> str:
    """How far it says it is."""
    label = f" {preview(strip_controls(progress.label), 60)}" if progress.label else ""
    unit = f" {preview(strip_controls(progress.unit), 20)}" if progress.unit else ""
    if not progress.total or progress.total <= 0:
        return f"{progress.current:g}{unit}{label}"
    part = min(max(progress.current / progress.total, 0.0), 1.0)
    full = round(part * _BAR)
    counted = f"{progress.current:g}/{progress.total:g}{unit}"
    return f"{'█' * full}{'░' * (_BAR - full)} {part:.0%} ({counted}){label}"


def line(task: Task) -> str:
    """A task in one line of a list."""
    title = titled(task)
    if task.state.terminal:
        return f'{_mark(task.state)} {task.id} "{title}" {_ended(task)} ({took(task)})'
    state = "waits" if task.state is State.QUEUED else "runs"
    if task.question is not None:
        state = "asks"
    far = f", {bar(task.progress)}" if task.progress is not None else ""
    return f'{_mark(task.state)} {task.id} "{title}" {state} ({took(task)}{far})'


def end(task: Task, printed: str = "") -> str:
    """B5, B6: how it ended, with its answer, or why it failed."""
    about = f'"{titled(task)}" ({task.id}, {took(task)})'
    if task.state is State.SUCCEEDED:
        head, body = f"{_mark(task.state)} Background task complete: {about}", answer(task)
    elif task.state is State.CANCELED:
        head, body = f"{_mark(task.state)} Background task stopped: {about}", ""
    else:
        head, body = f"{_mark(task.state)} Background task failed: {about}", why(task)
    return "\n\n".join(part for part in (head, body, code(printed)) if part)


def answer(task: Task) -> str:
    """What it gave back, for people."""
    result = task.result
    if isinstance(result, dict):
        known = cast("dict[str, Any]", result)
        if isinstance(known.get("text"), str):
            result = known["text"]
    if result is None:
        return "" if task.kind is Kind.SHELL else task.summary or ""
    if isinstance(result, str):
        return safe(result).strip()
    return code(json.dumps(result, ensure_ascii=False, indent=2))


def why(task: Task) -> str:
    """Why it failed, in a sentence without secrets."""
    message = task.error.message if task.error is not None else "it failed"
    if task.kind is Kind.AGENT and task.exit_code is not None:
        # What a program says of its failure; its exit code says nothing to people.
        message = message.removeprefix(f"exit code {task.exit_code}: ")
    return preview(strip_controls(redact_text(message)), _REASON_CHARS)


def question(task: str, title: str, asked: str) -> str:
    """What a task asks, and how it is answered."""
    about = f'❓ "{preview(strip_controls(title))}" asks:'
    return "\n\n".join(
        part for part in (about, code(asked), f"Answer with: /answer {task} TEXT") if part
    )


def safe(text: str) -> str:
    """Any number of lines, without what would move a cursor or hide something."""
    lines = text.replace("\t", "    ").split("\n")
    return "\n".join(
        f"{' ' * (len(line) - len(line.lstrip(' ')))}{strip_controls(line)}" for line in lines
    )


def code(text: str) -> str:
    """What a job has printed or asks, as a block."""
    text = safe(text).strip("\n")
    if not text.strip():
        return ""
    return fenced(Block(text, ""))


def took(task: Task) -> str:
    """How long it has run, or did."""
    return format_duration(task.elapsed_us(clock.now()) / clock.SECOND)


def _ended(task: Task) -> str:
    if task.state is State.SUCCEEDED:
        return "completed"
    if task.state is State.CANCELED:
        return "stopped"
    is_program = task.exit_code is not None and task.kind is not Kind.AGENT
    return f"failed with exit code {task.exit_code}" if is_program else "failed"


def _mark(state: State) -> str:
    match state:
        case State.SUCCEEDED:
            return "✅"
        case State.FAILED:
            return "❌"
        case State.CANCELED:
            return "⏹"
        case State.INPUT_REQUIRED:
            return "❓"
        case _:
            return "⏳"


# Buttons


def buttons(task: Task) -> tuple[Button, ...]:
    """What can be done about it from its post: nothing when it has ended."""
    if task.state.terminal:
        return ()
    return _fitting(
        Button("Stop", f"{STOP} {task.id}"), Button("Show output", f"{OUTPUT} {task.id}")
    )


def answer_buttons(asked: Question) -> tuple[Button, ...]:
    """A button for each answer where there are few, else one to answer in words."""
    tag = question_tag(asked)
    picks = [
        Button(choice, f"{CHOOSE} {asked.task} {tag} {number}")
        for number, choice in enumerate(choices(asked))
    ]
    return _fitting(*(picks or [Button("Answer", f"{ANSWER} {asked.task} {tag}")]))


def choices(asked: Question) -> list[str]:
    """The answers that a question takes, where they are few and short."""
    schema = asked.schema or {}
    given: Any = schema.get("enum")
    if given is None and schema.get("type") == "boolean":
        given = [True, False]
    if not isinstance(given, list):
        return []
    found = [
        each if isinstance(each, str) else json.dumps(each) for each in cast("list[Any]", given)
    ]
    fits = 0 < len(found) <= _CHOICES_MAX and all(0 < len(each) <= _CHOICE_CHARS for each in found)
    return found if fits else []


def question_tag(asked: Question) -> str:
    """A short name for a question of a task: a button has no room for more."""
    import hashlib

    text = f"{asked.attempt} {asked.id}"
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest()


def _fitting(*given: Button) -> tuple[Button, ...]:
    """All, or none: an id that somebody has chosen may be too long."""
    fits = all(len(each.action.encode(errors="replace")) <= ACTION_BYTES for each in given)
    return given if fits else ()
