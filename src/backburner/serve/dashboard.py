"""The dashboard: files that were built into the package, and nothing else of the disk."""

import mimetypes
import os
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

FOLDER = os.path.join(os.path.dirname(__file__), "static")

_PAGE = "/index.html"
_OURS = ("/v1/", "/healthz", "/metrics", "/openapi.json")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
    " font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)

_MISSING = """\
The HTTP API of Backburner is here; its dashboard is not: it was not built into this installation.

In a clone of the repository: make dashboard
Otherwise: pip install --force-reinstall "backburner[serve]"
"""


class _File(NamedTuple):
    path: str
    media_type: str
    lasts: bool
    """Its name changes with what is in it."""


class Dashboard:
    """Answers for files; everything else goes on to the API."""

    def __init__(self, app: ASGIApp, folder: str = FOLDER) -> None:
        self._app = app
        self._files = _files_of(folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        answer = self._answer(scope) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD") or path.startswith(_OURS) or path == "/v1":
            return None
        file = self._files.get(path)
        if file is None and self._wants_page(scope, path):
            file = self._files.get(_PAGE)
            if file is None and path == "/":
                return Response(_MISSING, media_type="text/plain")
        if file is None:
            return None
        with open(file.path, "rb") as opened:
            data = opened.read()
        kept = "public, max-age=31536000, immutable" if file.lasts else "no-cache"
        return Response(
            data,
            headers={"Content-Security-Policy": _POLICY, "Cache-Control": kept},
            media_type=file.media_type,
        )

    @staticmethod
    def _wants_page(scope: Scope, path: str) -> bool:
        """The page itself knows what its addresses mean."""
        if path == "/":
            return True
        last = path.rpartition("/")[2]
        return "." not in last and "text/html" in Headers(scope=scope).get("accept", "")


def _files_of(folder: str) -> dict[str, _File]:
    """By their addresses. Found once: what is asked for is never a path."""
    found: dict[str, _File] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            address = "/" + os.path.relpath(path, folder).replace(os.sep, "/")
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            found[address] = _File(path, kind, address.startswith("/assets/"))
    return found
