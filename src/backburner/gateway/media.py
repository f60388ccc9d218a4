"""Pictures and files that go out: those that a task has added, and those that its answer names.

A path in an answer was chosen by a model. It counts only where it lies in the folder of the session
or of the task, and no link leads out: each part of it is opened in the one before.
"""

import contextlib
import os
import re
import stat
from collections.abc import Generator, Sequence

from backburner.gateway.letters import File
from backburner.gateway.platform import Limits
from backburner.gateway.wording import answer
from backburner.model.errors import ToolError
from backburner.model.home import AttemptFolder
from backburner.model.states import Kind, State
from backburner.model.task import Task
from backburner.work.artifacts import artifacts_of
from backburner.work.tools.defaults.folder import Folder, read

FILES_MAX = 10
"""That go with one message."""

_NAMED = re.compile(r"!?\[[^\]\n]{0,200}\]\(<?([^)\s<>]{1,500})>?\)")
"""How an answer names a file: ![a picture](plot.png), [the report](out/report.pdf)."""

_TEXT_MAX_CHARS = 100_000
"""Of an answer that is searched."""


def files_named(text: str, roots: Sequence[str]) -> list[File]:
    """Files that an answer names, each below one of these folders; those that can be read."""
    found: list[File] = []
    for match in _NAMED.finditer(text[:_TEXT_MAX_CHARS]):
        name = match[1].removeprefix("file://")
        if "://" in name or name.startswith(("#", "mailto:")):
            continue
        for root in roots:
            file = File(root, name)
            if is_readable(file):
                if _whole(file) not in map(_whole, found):
                    found.append(file)
                break
        if len(found) >= FILES_MAX:
            break
    return found


def files_of(record: Task, own: AttemptFolder, folder: str) -> list[File]:
    """What a task has added, and what the answer of an agent names."""
    files = [File(own.path, f"artifacts/{each.name}") for each in artifacts_of(own)]
    if record.kind is Kind.AGENT and record.state is State.SUCCEEDED:
        known = [_whole(each) for each in files]
        named = files_named(answer(record), (folder, own.path))
        files += [each for each in named if _whole(each) not in known]
    return files


def _whole(file: File) -> str:
    """The same for every spelling of a path: no link is on the way, or it could not be read."""
    return os.path.normpath(os.path.join(file.root, file.path))


def enclosed(text: str, files: Sequence[File], limits: Limits) -> tuple[str, tuple[File, ...]]:
    """What is said and what is sent: files that the platform does not take are only named."""
    if not limits.enclosure_bytes:  # a terminal: say where they are
        paths = [os.path.join(each.root, each.path) for each in files[:FILES_MAX]]
        return "\n".join([text, *(f"file: {path}" for path in paths)]), ()
    large = [each for each in files if size_of(each) > limits.enclosure_bytes]
    if large:
        names = ", ".join(os.path.basename(each.path) for each in large[:FILES_MAX])
        text += f"\n\nToo large to be sent here: {names}"
    return text, tuple([each for each in files if each not in large][:FILES_MAX])


def is_readable(file: File) -> bool:
    """Whether it is a plain file below its folder."""
    return size_of(file) >= 0


def size_of(file: File) -> int:
    """How large it is; -1 where it is no plain file below its folder."""
    with _parent(file) as place:
        if place is not None:
            with contextlib.suppress(OSError):
                about = os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
                return about.st_size if stat.S_ISREG(about.st_mode) else -1
    return -1


def read_file(file: File, most: int) -> bytes | None:
    """What is in it; None where it is not there, no plain file, elsewhere, or too large."""
    with _parent(file) as place:
        if place is not None:
            with contextlib.suppress(OSError, ToolError):
                return read(*place, most=most)[0]
    return None


@contextlib.contextmanager
def _parent(file: File) -> Generator[tuple[int, str] | None]:
    """The folder that it is in, open, and its name there; None where no way leads there."""
    with contextlib.ExitStack() as stack:
        place: tuple[int, str] | None = None
        with contextlib.suppress(OSError, ToolError, ValueError):
            root = os.open(file.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            folder = Folder(root, os.path.normpath(file.root))
            place = stack.enter_context(folder.place(file.path))
        yield place
