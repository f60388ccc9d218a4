"""The folder that file tools work in, and no way out of it.

Paths come from models. Each component is opened in the folder before it (`openat`) and no symbolic
link is followed, so that neither a link, nor `..`, nor a folder that is swapped for a link in the
middle leads outside. Only plain files are read and written: a pipe would wait for ever, and a
device does things.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import PurePosixPath

from backburner.model.errors import ToolError
from backburner.work.tools.context import Context

FILE_MAX_BYTES = 10 * 1024 * 1024
"""Of a file that is read or written whole."""

_TOO_LARGE = "use grep_files to find the place in a large file"
_SHOWN_MAX = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """A folder that is open, and what is beneath it."""

    def __init__(self, root: int, path: str) -> None:
        self._root = root
        self._path = path

    def parts(self, path: str) -> tuple[str, ...]:
        """The names on the way to ``path``; none for the folder itself. ToolError outside of it."""
        if not path or "\0" in path or not _is_encodable(path):
            raise ToolError("a path is needed", remedy="give one relative to the folder")
        if path.startswith("/"):
            below = os.path.relpath(path, self._path)
        else:
            below = os.path.normpath(path)  # no link is followed, so `a/../b` is `b`
        if below == ".." or below.startswith("../"):
            raise ToolError(
                f"{shown(path)} is outside of the folder of this session",
                remedy="give a path relative to that folder",
            )
        return () if below == "." else PurePosixPath(below).parts

    @contextlib.contextmanager
    def directory(self, parts: tuple[str, ...], *, make: bool = False) -> Generator[int]:
        """A descriptor of the folder there; it is made if need be and asked for."""
        here = os.dup(self._root)
        try:
            for part in parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=here)
                below = os.open(part, _FOLDER, dir_fd=here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    @contextlib.contextmanager
    def place(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """The folder that ``path`` is in, and its name there."""
        parts = self.parts(path)
        if not parts:
            raise IsADirectoryError
        with self.directory(parts[:-1], make=make) as parent:
            yield parent, parts[-1]


@contextlib.contextmanager
def folder_of(context: Context, path: str) -> Generator[Folder]:
    """The folder of a call that is about ``path``: what goes wrong inside is told in words."""
    try:
        place = context.folder
        if place is None:
            raise ToolError("this session has no folder, so there are no files")
        root = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield Folder(root, os.path.normpath(place))
        finally:
            os.close(root)
    except OSError as error:
        raise ToolError(_in_words(error, shown(path))) from None


def read(parent: int, name: str, *, most: int = FILE_MAX_BYTES) -> tuple[bytes, os.stat_result]:
    """A whole plain file, and what it was when it was opened."""
    _plain(os.stat(name, dir_fd=parent, follow_symlinks=False), name)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=parent), "rb") as file:
        about = os.fstat(file.fileno())
        _plain(about, name)  # it may be another one by now
        content = file.read(most + 1)
    if len(content) > most:
        raise ToolError(f"{shown(name)} has more than {most} bytes", remedy=_TOO_LARGE)
    return content, about


def write(
    parent: int, name: str, content: bytes, *, instead_of: os.stat_result | None = None
) -> bool:
    """Put a file in place as a whole. Whether there was none.

    With ``instead_of`` it has to be that file, unchanged.
    """
    check_size(len(content))
    before = about(parent, name)
    if before is not None:
        _plain(before, name)
    if instead_of is not None and (before is None or _version(before) != _version(instead_of)):
        raise ToolError(f"{shown(name)} was changed meanwhile", remedy="read it again")
    new = f".backburner-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(new, flags, 0o666, dir_fd=parent), "wb") as file:
        try:
            if before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
            file.write(content)
            file.flush()
            os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            os.unlink(new, dir_fd=parent)
            raise
    return before is None


def check_size(size: int) -> None:
    """ToolError where a file of this size is not written."""
    if size > FILE_MAX_BYTES:
        raise ToolError(f"that is more than {FILE_MAX_BYTES} bytes", remedy="write several files")


def about(parent: int, name: str) -> os.stat_result | None:
    """What is there, a link as itself; None where nothing is."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def kind(mode: int) -> str:
    """In a word."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def shown(name: str) -> str:
    """A name as it can be told: any bytes may be one."""
    text = os.fsencode(name).decode("utf-8", "replace") if _is_encodable(name) else repr(name)
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


def _plain(about: os.stat_result, name: str) -> None:
    if stat.S_ISREG(about.st_mode):
        return
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError
    if stat.S_ISLNK(about.st_mode):
        raise ToolError(f"{shown(name)} is a symbolic link, and links are not followed")
    raise ToolError(f"{shown(name)} is a pipe, a socket or a device, and no plain file")


def _version(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def _in_words(error: OSError, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no {path}"
    if isinstance(error, IsADirectoryError):
        return f"{path} is a directory"
    if isinstance(error, NotADirectoryError):
        return f"on the way to {path} is something that is no directory, or a symbolic link"
    return f"{path}: {os.strerror(error.errno) if error.errno else type(error).__name__}"
