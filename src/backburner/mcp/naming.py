"""Which session a client of MCP works in: one for each client and workspace folder.

The name is made from both alone, so that a client that is started again finds its tasks.
"""

import hashlib
import os
import re
from urllib.parse import unquote, urlsplit

_UNNAMED = "client"
_CLIENT_MAX_CHARS = 40
_FOLDER_MAX_CHARS = 40
_NOT_PLAIN = re.compile(r"[^a-z0-9.]+")


def session_name(client: str | None, folder: str) -> str:
    """``claude-code@my-repo-1f2e3d4c``: readable, and different for folders of the same name."""
    path = os.path.realpath(folder)  # a hook and a root may name it through a link
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = _plain(client or "", _CLIENT_MAX_CHARS) or _UNNAMED
    place = _plain(os.path.basename(path), _FOLDER_MAX_CHARS) or "root"
    return f"{name}@{place}-{digest}"


def folder_of(uri: str) -> str | None:
    """The folder that a root of a client names; None where it is no local one."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else None


def _plain(text: str, limit: int) -> str:
    return _NOT_PLAIN.sub("-", text.lower())[:limit].strip("-.")
