"""Reading and changing the files of the session's folder."""

import io
import os
import stat
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from backburner.model.errors import ToolError
from backburner.work.tools.context import Context
from backburner.work.tools.defaults import folder
from backburner.work.tools.defaults.folder import folder_of, shown
from backburner.work.tools.tool import tool

READ_MAX_CHARS = 60_000
"""About 15,000 tokens of one file at a time."""
LINES_MAX = 5_000
ENTRIES_MAX = 1_000

_LOOKED_AT = 8 * 1024
"""A NUL among the first bytes: no text has one."""
_SCANNED_MAX = 100_000

Path = Annotated[str, Field(description="Path relative to the folder of the session")]


@tool(display_name="Read file", readonly=True, idempotent=True, narration="Reading {path}")
def read_file(
    context: Context,
    path: Path,
    first_line: Annotated[int, Field(description="Where to begin, counted from 1", ge=1)] = 1,
    lines: Annotated[int, Field(description="How many lines at most", ge=1, le=LINES_MAX)] = 2000,
) -> dict[str, Any]:
    """Read a text file, whole or some of its lines."""
    with folder_of(context, path) as root, root.place(path) as (parent, name):
        content, _ = folder.read(parent, name)
    text = _text(content, path).decode("utf-8", "replace")
    every = [*io.StringIO(text, newline="\n")]  # lines as grep_files counts them
    part = "".join(every[first_line - 1 : first_line - 1 + lines])
    cut = part[:READ_MAX_CHARS]
    whole = first_line == 1 and len(cut) == len(text)
    return {
        "path": path,
        "text": cut,
        "first_line": first_line,
        "total_lines": len(every),
        "complete": whole,
    }


@tool(display_name="Write file", destructive=True, idempotent=True, narration="Writing {path}")
def write_file(
    context: Context,
    path: Path,
    text: Annotated[str, Field(description="The whole content of the file")],
) -> dict[str, Any]:
    """Write a text file. What was in it is replaced; folders on the way are made."""
    content = _encoded(text)
    with folder_of(context, path) as root, root.place(path, make=True) as (parent, name):
        created = folder.write(parent, name, content)
    return {"path": path, "bytes": len(content), "created": created}


@tool(display_name="Edit file", destructive=True, narration="Editing {path}")
def edit_file(
    context: Context,
    path: Path,
    old: Annotated[str, Field(description="The text to replace, exactly as it is", min_length=1)],
    new: Annotated[str, Field(description="What to put in its place")],
    everywhere: Annotated[
        bool, Field(description="Replace it wherever it occurs, not only where it is unique")
    ] = False,
) -> dict[str, Any]:
    """Replace a piece of a text file, which has to occur exactly once in it."""
    with folder_of(context, path) as root, root.place(path) as (parent, name):
        content, about = folder.read(parent, name)
        before, wanted = _text(content, path), _encoded(old)
        found = before.count(wanted)
        if found == 0:
            raise ToolError(
                f"the text to replace is not in {shown(path)}",
                remedy="read the file, and give it exactly, white space included",
            )
        if found > 1 and not everywhere:
            raise ToolError(
                f"the text to replace occurs {found} times in {shown(path)}",
                remedy="give more of what is around it, or everywhere=true",
            )
        given = _encoded(new)
        folder.check_size(len(before) + found * (len(given) - len(wanted)))
        after = before.replace(wanted, given)
        folder.write(parent, name, after, instead_of=about)
    return {"path": path, "replaced": found, "bytes": len(after)}


@tool(display_name="List directory", readonly=True, idempotent=True)
def list_directory(context: Context, path: Path = ".") -> dict[str, Any]:
    """List the files and directories in a directory, by name."""
    with folder_of(context, path) as root, root.directory(root.parts(path)) as here:
        with os.scandir(here) as entries:
            names = sorted(entry.name for entry in islice(entries, _SCANNED_MAX))
        listed = [
            {"name": shown(name), **_brief(about)}
            for name in names[:ENTRIES_MAX]
            if (about := folder.about(here, name)) is not None
        ]
    return {"path": path, "entries": listed, "complete": len(names) <= ENTRIES_MAX}


@tool(display_name="Delete file", destructive=True, narration="Deleting {path}")
def delete_file(context: Context, path: Path) -> dict[str, Any]:
    """Delete a file. A symbolic link is deleted itself; directories are not."""
    with folder_of(context, path) as root, root.place(path) as (parent, name):
        about = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
            raise ToolError(f"{shown(path)} is a {folder.kind(about.st_mode)}, and no file")
        os.unlink(name, dir_fd=parent)
    return {"path": path, "deleted": True}


@tool(display_name="Describe file", readonly=True, idempotent=True)
def stat_file(context: Context, path: Path) -> dict[str, Any]:
    """Tell the kind, size, time of the last change and permissions of a file or directory."""
    with folder_of(context, path) as root:
        parts = root.parts(path)
        with root.directory(parts[:-1]) as parent:
            about = os.stat(parts[-1] if parts else ".", dir_fd=parent, follow_symlinks=False)
    changed = datetime.fromtimestamp(about.st_mtime, UTC)
    return {
        "path": path,
        **_brief(about),
        "changed_at": changed.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "permissions": stat.filemode(about.st_mode),
    }


def _brief(about: os.stat_result) -> dict[str, Any]:
    return {"kind": folder.kind(about.st_mode), "bytes": about.st_size}


def _text(content: bytes, path: str) -> bytes:
    if b"\0" in content[:_LOOKED_AT]:
        raise ToolError(f"{shown(path)} is binary ({len(content)} bytes), and no text")
    return content


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("the text holds half a surrogate pair, and is no Unicode") from None
