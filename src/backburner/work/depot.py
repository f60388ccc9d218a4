"""Where artifacts lie that all machines of a shared record read: a folder or a bucket, by address.

Reached through fsspec, which is loaded when there is something to bring or to fetch. Every call
blocks, and is for a thread. Names are a job's own, so they become keys that mean nothing else
anywhere; sizes are those of the files when they were opened, and never more is read or written.
"""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any, Protocol
from urllib.parse import urlsplit

from backburner.model.document import Artifact
from backburner.model.errors import ArtifactsUnreachable, NotFound, UsageError
from backburner.model.task import Task

_PIECE = 1024 * 1024
_BUFFER = 8 * 1024 * 1024
"""What an upload in parts holds in memory; S3 takes no part below 5 MiB but the last."""

_PLAIN = re.compile(r"[\w][\w.+@,=() -]*")
_PLAIN_MAX_BYTES = 200
_NOT_SHARED = {"memory", "local-memory", "http", "https", "data"}
"""Of these one process sees nothing that another one has put there, or nobody can put anything."""

_PACKAGES = {
    "file": "fsspec",
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
}


class _File(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...


def check_address(text: str) -> str:
    """The address as it is written in the record; UsageError where it cannot be one."""
    unusable = UsageError(
        f"artifacts cannot lie at {text!r}",
        remedy="give a folder as file:///srv/artifacts, or a bucket as s3://bucket/folder",
    )
    try:
        parts = urlsplit(text)
        secret = bool(parts.username or parts.password)
    except ValueError:
        raise unusable from None
    if secret:
        raise UsageError(
            "the address of the artifacts holds a secret, and it is shown with every task",
            remedy="leave it to the environment, as AWS_ACCESS_KEY_ID and the like",
        )
    if not parts.scheme or parts.scheme in _NOT_SHARED or "::" in text:
        raise unusable
    if parts.query or parts.fragment or (parts.scheme == "file") is bool(parts.netloc):
        raise unusable
    return text.rstrip("/")


def key_of(name: str) -> str:
    """The name of a file as the last part of an address: itself, unless that could be read as

    something else, or is too long.
    """
    if _PLAIN.fullmatch(name) and len(name.encode()) <= _PLAIN_MAX_BYTES:
        return name
    return "~" + hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def stored_artifacts(task: Task) -> list[Artifact]:
    """What the record lists, by name."""
    stored = task.artifacts
    if stored is None:
        return []
    root = f"{stored.place}/{stored.folder}" if stored.place else stored.folder
    return [
        Artifact(name, size, f"{root}/{key_of(name) if stored.place else name}")
        for name, size in sorted(stored.sizes.items())
    ]


class Depot:
    """One of them. ``attempt`` is the name of the folder of an attempt, as in a home."""

    def __init__(self, address: str) -> None:
        """UsageError where no such place can be reached from here.

        Whether it is there, and lets us in, only its first use shows.
        """
        self.address = check_address(address)
        _check_installed(urlsplit(address).scheme)
        self._found: tuple[Any, str] | None = None

    def check_folder(self) -> bool:
        """Whether it is a folder, which can be written to or made; ArtifactsUnreachable where not.

        Nothing of the trial stays. What any other address leads to, only its first use shows.
        """
        if not self.address.startswith("file:"):
            return False
        with self._reached() as (_, root):
            place = root
            while not os.path.lexists(place):
                place = os.path.dirname(place)
            os.rmdir(tempfile.mkdtemp(dir=place))
        return True

    def path(self, attempt: str, name: str) -> str:
        """Where a file lies, for whoever can go there."""
        return f"{self.address}/{attempt}/{key_of(name)}"

    def put(self, attempt: str, name: str, source: int, size: int) -> None:
        """Bring the first ``size`` bytes of an open file there; OSError where it has fewer."""
        with self._reached() as (system, root):
            folder = f"{root}/{attempt}"
            system.makedirs(folder, exist_ok=True)
            with system.open(f"{folder}/{key_of(name)}", "wb", block_size=_BUFFER) as target:
                os.lseek(source, 0, os.SEEK_SET)
                _copy(_Descriptor(source), target, size)

    def get(self, attempt: str, name: str, target: int, size: int) -> None:
        """Write it into an open file. NotFound where it is not there in that size."""
        with self._reached() as (system, root):
            path = f"{root}/{attempt}/{key_of(name)}"
            missing = NotFound(f"no artifact {name!r} in {self.address}")
            try:
                is_there = system.size(path) == size
            except FileNotFoundError:
                raise missing from None
            if not is_there:
                raise missing
            with system.open(path, "rb") as source:
                _copy(source, _Descriptor(target), size)

    def remove(self, attempt: str) -> None:
        """All files of an attempt; nothing where there are none."""
        with self._reached() as (system, root), contextlib.suppress(FileNotFoundError):
            system.invalidate_cache()
            system.rm(f"{root}/{attempt}", recursive=True)

    @contextlib.contextmanager
    def _reached(self) -> Generator[tuple[Any, str]]:
        """The file system and the path in it. What libraries raise becomes one error of ours."""
        try:
            if self._found is None:
                self._found = self._look_up()
            yield self._found
        except (ArtifactsUnreachable, NotFound, UsageError):
            raise
        except Exception as error:  # every file system has errors of its own
            said = " ".join(str(error).split())[:300] or type(error).__name__
            raise ArtifactsUnreachable(
                f"{self.address} cannot be used: {said}",
                remedy="check the address, and what the environment says about access to it",
            ) from error

    def _look_up(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        options = {"auto_mkdir": True} if self.address.startswith("file:") else {}
        return url_to_fs(self.address, **options)


def _check_installed(scheme: str) -> None:
    """UsageError where nothing reaches such addresses. Of what is usual nothing is loaded for it:

    every command would wait for that.
    """
    if find_spec("fsspec") is None:
        raise UsageError(
            "artifacts on a shared record need fsspec", remedy='pip install "backburner[postgres]"'
        )
    package = _PACKAGES.get(scheme)
    if package is not None and find_spec(package) is not None:
        return
    try:
        from fsspec.registry import get_filesystem_class

        get_filesystem_class(scheme)
    except ValueError:
        raise UsageError(
            f"{scheme}:// is no kind of address that fsspec knows",
            remedy="give a folder as file:///srv/artifacts, or a bucket as s3://bucket/folder",
        ) from None
    except ImportError as error:
        raise UsageError(
            f"nothing that is installed reaches {scheme}:// addresses",
            remedy=f"pip install {package}" if package else str(error),
        ) from None


class _Descriptor:
    """An open file that is somebody else's to close."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, size: int, /) -> bytes:
        return os.read(self._fd, size)

    def write(self, data: bytes, /) -> int:
        return os.write(self._fd, data)


def _copy(source: _File, target: _File, size: int) -> None:
    while size > 0:
        piece = source.read(min(_PIECE, size))
        if not piece:
            raise OSError("the file became shorter while it was read")
        size -= len(piece)
        view = memoryview(piece)
        while view:
            view = view[target.write(bytes(view)) :]
