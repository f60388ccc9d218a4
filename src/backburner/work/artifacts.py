"""Files that a job adds to its task: a copy of each, whole or not at all, within limits.

They lie in one folder of the attempt under names of their own, and go with the task. Whoever adds
one holds the lock of that folder, so that a limit holds for any number of processes at once.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Generator, Sequence

from backburner.model.document import Artifact
from backburner.model.errors import LimitReached, NotFound, UsageError
from backburner.model.home import AttemptFolder
from backburner.model.limits import ARTIFACTS_MAX, Settings
from backburner.model.outcome import Image
from backburner.work.named_file import open_to_read
from backburner.work.plain_file import open_plain

_UNLESS_TOLD = Settings()
_NEW = ".new"
_PIECE = 1024 * 1024
_NAME_MAX_BYTES = 200
"""With room for a number that makes it unique."""

_CANNOT_COPY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
"""What copy_file_range says where the two file systems cannot do it between them."""


def artifacts_of(folder: AttemptFolder) -> list[Artifact]:
    """What was added, by name."""
    found: list[Artifact] = []
    try:
        with os.scandir(folder.artifacts) as entries:
            for entry in entries:
                if is_name(entry.name) and entry.is_file(follow_symlinks=False):
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(Artifact(entry.name, size, entry.path))
                    if len(found) > ARTIFACTS_MAX:
                        break
    except OSError:  # there are none, or the folder goes at this moment
        pass
    return sorted(found, key=lambda each: each.name)


def is_name(name: str) -> bool:
    """Whether we could have named it so: a job may put anything into the folder."""
    return name.isprintable() and "/" not in name and not name.startswith(".")


def open_file(folder: AttemptFolder, name: str) -> int:
    """A descriptor of a file that was added. NotFound, also for links to elsewhere."""
    if "/" in name or "\0" in name or name.startswith("."):
        raise NotFound(f"no artifact {name!r}")
    try:
        place = os.open(folder.artifacts, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return open_plain(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=place)
        finally:
            os.close(place)
    except (OSError, ValueError):
        raise NotFound(f"no artifact {name!r}") from None


def check(path: str, limits: Settings) -> None:
    """Whether this file could be added; nothing is changed."""
    with _source(path, limits):
        pass


def add(folder: AttemptFolder, path: str, name: str | None, limits: Settings) -> Artifact:
    """Copy the file at ``path``. Refused, with nothing changed: what is no plain file, cannot be

    read, is too large, or would be too much with the others.
    """
    with _source(path, limits) as source, _locked(folder) as place:
        others = artifacts_of(folder)
        _refuse_too_many(others, os.fstat(source).st_size, limits)
        chosen = _free_name(_safe_name(name or os.path.basename(path)), others)
        new = f"{place}/{_NEW}"
        try:
            size = _copy(source, new, limits.artifact_limit)
            if size is not None:
                os.rename(new, f"{place}/{chosen}")
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)
    if size is None:  # it has grown meanwhile
        raise _too_large(path, limits.artifact_limit)
    return Artifact(chosen, size, f"{place}/{chosen}")


def put_images(
    folder: AttemptFolder, images: Sequence[Image], limits: Settings = _UNLESS_TOLD
) -> tuple[list[str], list[str]]:
    """Keep the pictures that a tool or an agent gave back, each where the limits let it.

    Answers where they are, and why others were not kept. OSError where there is no room.
    """
    kept: list[str] = []
    refused: list[str] = []
    with _locked(folder) as place:
        others = artifacts_of(folder)
        for number, image in enumerate(images, 1):
            kind = image.media_type.partition("/")[2].partition("+")[0] or "bin"
            wanted = _safe_name(image.name or f"image-{number}.{kind}")
            try:
                if len(image.data) > limits.artifact_limit:
                    raise _too_large(wanted, limits.artifact_limit)
                _refuse_too_many(others, len(image.data), limits)
            except LimitReached as error:
                refused.append(f"a picture was not kept: {error}")
                if len(others) >= ARTIFACTS_MAX:
                    break  # the same holds for all that come
                continue
            name = _free_name(wanted, others)
            path = f"{place}/{name}"
            _write_new(f"{place}/{_NEW}", path, image.data)
            others.append(Artifact(name, len(image.data), path))
            kept.append(path)
    return kept, refused


def _write_new(new: str, path: str, data: bytes) -> None:
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)
        os.rename(new, path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        raise


@contextlib.contextmanager
def _source(path: str, limits: Settings) -> Generator[int]:
    """The file, opened, if it may be added as it is now."""
    fd = open_to_read(path)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no plain file"
            raise UsageError(
                f"{path!r} is {what}", remedy="add a plain file, such as a tar archive of it"
            )
        if status.st_size > limits.artifact_limit:
            raise _too_large(path, limits.artifact_limit)
        yield fd
    finally:
        os.close(fd)


def _too_large(path: str, limit: int) -> LimitReached:
    return LimitReached(
        f"{path!r} is larger than {_size(limit)}, the limit of one artifact",
        remedy="compress it, or start the task with a larger BACKBURNER_ARTIFACT_LIMIT (bytes)",
    )


def _refuse_too_many(others: list[Artifact], size: int, limits: Settings) -> None:
    if len(others) >= ARTIFACTS_MAX:
        raise LimitReached(
            f"the task has {len(others)} artifacts, and that is the limit",
            remedy="put several files into one archive",
        )
    if sum(each.bytes for each in others) + size > limits.artifacts_limit:
        raise LimitReached(
            f"the artifacts of the task would be larger than {_size(limits.artifacts_limit)}",
            remedy="start the task with a larger BACKBURNER_ARTIFACTS_LIMIT (bytes)",
        )


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count} bytes"


@contextlib.contextmanager
def _locked(folder: AttemptFolder) -> Generator[str]:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder.artifacts, 0o700)
    fd = os.open(folder.artifacts, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield folder.artifacts
    finally:
        os.close(fd)


def _copy(source: int, path: str, limit: int) -> int | None:
    """How many bytes were copied, blocks being shared where the file system can.

    None where there are more than the limit.
    """
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        total = 0
        by_kernel = True
        while True:
            if by_kernel:
                try:
                    count = os.copy_file_range(source, target, limit + 1 - total)
                except OSError as error:
                    if total or error.errno not in _CANNOT_COPY:
                        raise
                    by_kernel = False
                    continue
            else:
                piece = os.read(source, _PIECE)
                count = len(piece)
                _write_all(target, piece)
            total += count
            if not count or total > limit:
                return total if total <= limit else None
    finally:
        os.close(target)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _safe_name(name: str) -> str:
    """A name that is one, whatever the file was called."""
    plain = "".join(each if each.isprintable() and each != "/" else "_" for each in name).strip()
    if not plain.strip("._ "):
        plain = "artifact"
    if plain.startswith("."):
        plain = f"_{plain[1:]}"
    stem, suffix = os.path.splitext(plain)
    suffix = suffix if len(suffix.encode()) <= 20 else ""  # noqa: PLR2004 - no ending any more
    stem = plain[: len(plain) - len(suffix)] if suffix else plain
    room = _NAME_MAX_BYTES - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore") + suffix


def _free_name(name: str, others: list[Artifact]) -> str:
    taken = {each.name for each in others}
    stem, suffix = os.path.splitext(name)
    number = 1
    chosen = name
    while chosen in taken:
        number += 1
        chosen = f"{stem}-{number}{suffix}"
    return chosen
