"""Handing answers and messages on to jobs: files that appear under the id or the number.

A file is put in place by rename, and only then does the record say so: a keeper that dies in
between leaves something that the next one hands on again, as the same file.
"""

import contextlib
import os
from collections.abc import Callable

from backburner.model.home import AttemptFolder
from backburner.model.messages import Message
from backburner.model.questions import Question
from backburner.store.protocol import Store
from backburner.work.asking import REFUSED

FolderOf = Callable[[str, int], AttemptFolder | None]
"""Where an attempt at a task is being carried out; None where it is not, or not yet."""


async def hand_on(store: Store, folder_of: FolderOf, report: Callable[[str], None]) -> None:
    """Put everything that was answered or sent where the jobs look for it.

    What cannot be put there for lack of room is left for the next time.
    """
    for question in await store.answers():
        folder = folder_of(question.task, question.attempt)
        if folder is not None and _try(folder, question, report):
            await store.handed_on(question.task, question.attempt, question.id)
    behind: set[str] = set()  # the order of its messages is kept
    for message in await store.messages():
        folder = folder_of(message.task, message.attempt)
        if folder is None or message.task in behind:
            continue
        if _try(folder, message, report):
            await store.taken(message.task, message.attempt, message.number)
        else:
            behind.add(message.task)


def _try(folder: AttemptFolder, what: Question | Message, report: Callable[[str], None]) -> bool:
    """Whether it was done with: put in place, or beyond help."""
    try:
        if isinstance(what, Question):
            _put(folder, folder.answers, what.id, what.answer or "")
        else:
            _put(folder, folder.messages, str(what.number), what.text)
    except (FileNotFoundError, NotADirectoryError):
        report(f"{what.task}: what was sent has no place: its folder was deleted")
    except OSError as error:
        report(f"{what.task}: what was sent cannot be handed on yet: {error}")
        return False
    return True


def refuse(folder: AttemptFolder, question: str, reason: str) -> None:
    """Whoever waits for an answer to this question waits in vain."""
    with contextlib.suppress(OSError):
        _put(folder, folder.answers, f"{question}{REFUSED}", f"{reason}\n")


def _put(folder: AttemptFolder, place: str, name: str, text: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    # Not in that folder: whoever looks into it finds whole answers only.
    new = f"{folder.path}/answer.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)  # the job may have put a pipe there, on which we would wait for ever
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "wb") as file:
        file.write(text.encode("utf-8", errors="replace"))
    os.rename(new, f"{place}/{name}")
