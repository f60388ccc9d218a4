"""Finding lines in the files of the session's folder, in bounded time.

The pattern is a model's: RE2 takes linear time. Files, bytes, time and answers are counted, and the
answer says which of them ran out.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from backburner.model.errors import ToolError
from backburner.work.log.pattern import LinePattern
from backburner.work.tools.context import Context
from backburner.work.tools.defaults import folder
from backburner.work.tools.defaults.folder import folder_of, shown
from backburner.work.tools.tool import tool

MATCHES_MAX = 1000
LINE_MAX_CHARS = 300
FILES_MAX = 20_000
BYTES_MAX = 256 * 1024 * 1024
FILE_MAX_BYTES = 10 * 1024 * 1024
SECONDS_MAX = 20.0
DEPTH_MAX = 40

_LOOKED_AT = 8 * 1024
_LEFT_OUT = frozenset({".git", "__pycache__", "node_modules", ".venv"})
"""Large, and not what anybody looks for; a search that begins inside of one finds it."""


class Enough(Exception):
    """A limit is reached; the text names it."""


@dataclass(slots=True)
class Search:
    """One search: what was found, and what is left of its limits."""

    pattern: LinePattern
    glob: str | None
    most: int
    deadline: float
    matches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    files: int = 0
    read: int = 0
    skipped: int = 0
    """Files that are binary, too large or not readable."""

    def below(self, parent: int, names: list[str], path: str, depth: int) -> None:
        """Search these, in their order, and what is below them."""
        for name in names:
            if time.monotonic() > self.deadline:
                raise Enough(f"the time of {SECONDS_MAX:g} s is up")
            about = folder.about(parent, name)
            kind = None if about is None else folder.kind(about.st_mode)
            if kind == "directory" and name not in _LEFT_OUT and depth < DEPTH_MAX:
                self._directory(parent, name, f"{path}{shown(name)}/", depth + 1)
            elif kind == "file" and self._is_wanted(name, path):
                self._file(parent, name, path + shown(name))

    def _directory(self, parent: int, name: str, path: str, depth: int) -> None:
        try:
            here = os.open(
                name,
                os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                dir_fd=parent,
            )
        except OSError:
            self.skipped += 1
            return
        try:
            self.below(here, sorted(os.listdir(here)), path, depth)
        finally:
            os.close(here)

    def _is_wanted(self, name: str, path: str) -> bool:
        return self.glob is None or (
            fnmatchcase(name, self.glob) or fnmatchcase(path + name, self.glob)
        )

    def _file(self, parent: int, name: str, path: str) -> None:
        if self.files >= FILES_MAX:
            raise Enough(f"{FILES_MAX} files were searched")
        if self.read >= BYTES_MAX:
            raise Enough(f"{BYTES_MAX} bytes were searched")
        try:
            content, _ = folder.read(parent, name, most=FILE_MAX_BYTES)
        except (OSError, ToolError):
            self.skipped += 1
            return
        self.files += 1
        self.read += len(content)
        if b"\0" in content[:_LOOKED_AT]:
            self.skipped += 1
            return
        text = content.decode("utf-8", "replace").replace("\r\n", "\n")  # `$` is before the \r too
        for number, line in self._found(text):
            if len(self.matches) >= self.most:
                raise Enough(f"{self.most} lines were found")
            self.matches.append({"path": path, "line": number, "text": line[:LINE_MAX_CHARS]})

    def _found(self, text: str) -> Iterator[tuple[int, str]]:
        anywhere = self.pattern.anywhere
        if anywhere is not None and not anywhere(text):
            return
        for number, line in enumerate(text.split("\n"), 1):
            if self.pattern.matches(line):
                yield number, line


@tool(
    display_name="Search files",
    readonly=True,
    idempotent=True,
    background=True,
    narration="Searching for {pattern}",
)
def grep_files(
    context: Context,
    pattern: Annotated[
        str, Field(description="RE2 regular expression, matched in each line", min_length=1)
    ],
    path: Annotated[
        str, Field(description="File or directory, relative to the folder of the session")
    ] = ".",
    glob: Annotated[
        str | None, Field(description="Only files whose name fits, such as *.py", max_length=200)
    ] = None,
    *,
    ignore_case: bool = False,
    max_matches: Annotated[int, Field(ge=1, le=MATCHES_MAX)] = 100,
) -> dict[str, Any]:
    """Find the lines that match a pattern in the text files of a directory and all below it."""
    try:
        compiled = LinePattern.compiled(f"(?i){pattern}" if ignore_case else pattern)
    except ValueError as error:
        raise ToolError(
            f"the pattern cannot be used: {error}",
            remedy="use RE2 syntax (no look-around, no back-references); \\ before . [ ( * + ?",
        ) from None
    search = Search(compiled, glob, max_matches, time.monotonic() + SECONDS_MAX)
    left_out: str | None = None
    with folder_of(context, path) as root:
        parts = root.parts(path)
        try:
            _begin(search, root, parts, path)
        except Enough as enough:
            left_out = f"there may be more: {enough}"
    return {
        "matches": search.matches,
        "files_searched": search.files,
        "files_skipped": search.skipped,
        "complete": left_out is None,
        **({"note": left_out} if left_out else {}),
    }


def _begin(search: Search, root: folder.Folder, parts: tuple[str, ...], path: str) -> None:
    """With a directory, or with the one file that was named."""
    on_the_way = [f"{shown(part)}/" for part in parts]
    if parts:
        with root.directory(parts[:-1]) as parent:
            about = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
            kind = folder.kind(about.st_mode)
            if kind == "file":
                search.glob = None  # it was named
                search.below(parent, [parts[-1]], "".join(on_the_way[:-1]), 0)
                return
            if kind != "directory":
                raise ToolError(f"{shown(path)} is no plain file and no directory")
    with root.directory(parts) as here:
        search.below(here, sorted(os.listdir(here)), "".join(on_the_way), 0)
