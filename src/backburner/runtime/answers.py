"""Handing answers on to the jobs that wait for them: a file that appears under the question's id.

The file is put in place by rename, and only then does the record say so: a keeper that dies in
between leaves an answer that the next one hands on again, as the same file.
"""

import contextlib
import os
from collections.abc import Callable

from backburner.model.home import AttemptFolder
from backburner.model.questions import Question
from backburner.store.protocol import Store
from backburner.work.asking import REFUSED


async def hand_on(
    store: Store, folder: AttemptFolder, question: Question, report: Callable[[str], None]
) -> None:
    """Put the answer where the job looks for it. Where there is no room, the caller comes again."""
    try:
        _put(folder, question.id, (question.answer or "").encode("utf-8", errors="replace"))
    except (FileNotFoundError, NotADirectoryError):
        report(f"{question.task}: an answer has no place: its folder was deleted")
    except OSError as error:
        report(f"{question.task}: an answer cannot be handed on yet: {error}")
        return
    await store.handed_on(question.task, question.attempt, question.id)


def refuse(folder: AttemptFolder, question: str, reason: str) -> None:
    """Whoever waits for an answer to this question waits in vain."""
    with contextlib.suppress(OSError):
        _put(folder, f"{question}{REFUSED}", f"{reason}\n".encode())


def _put(folder: AttemptFolder, name: str, text: bytes) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder.answers, 0o700)
    # Not in that folder: whoever looks into it finds whole answers only.
    new = f"{folder.path}/answer.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)  # the job may have put a pipe there, on which we would wait for ever
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "wb") as file:
        file.write(text)
    os.rename(new, f"{folder.answers}/{name}")
