"""Reading pages of the web as text."""

import re
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field

from backburner.model.errors import ToolError
from backburner.work.fetch import FetchFailed, Page, fetch
from backburner.work.tools.defaults.html_text import text_of_html
from backburner.work.tools.tool import tool

LIMIT_S = 30.0
PAGE_MAX_BYTES = 2 * 1024 * 1024
TEXT_MAX_CHARS = 60_000

_IS_TEXT = re.compile(r"text/.+|application/(?:[\w.-]+\+)?(?:json|xml)|application/javascript")
_IS_HTML = frozenset({"text/html", "application/xhtml+xml"})
_CHARSETS = re.compile(
    r"(?:us-)?ascii|utf-?8|utf-?16(?:le|be)?|latin-?1|iso-8859-\d+|windows-125\d|cp125\d|koi8-[ru]"
    r"|gb2312|gbk|gb18030|big5|shift_jis|euc-(?:jp|kr)"
)
"""Python knows codecs that are no character sets, and some that take their time."""


@tool(
    display_name="Fetch web page",
    readonly=True,
    idempotent=True,
    background=True,
    narration="Reading {url}",
)
def web_fetch(
    url: Annotated[str, Field(description="Address, beginning with http:// or https://")],
    start: Annotated[
        int, Field(description="Character to begin with, to read on in a long page", ge=0)
    ] = 0,
    max_chars: Annotated[int, Field(ge=1, le=TEXT_MAX_CHARS)] = 20_000,
) -> dict[str, Any]:
    """Read a page of the web as text. Addresses of private networks are refused."""
    return read_page(url, start, max_chars)


def read_page(
    url: str, start: int, max_chars: int, *, trusted: Collection[str] = ()
) -> dict[str, Any]:
    """What `web_fetch` gives; ``trusted`` hosts may be private ones."""
    try:
        page = fetch(
            url,
            limit_s=LIMIT_S,
            most_bytes=PAGE_MAX_BYTES,
            accept="text/html, text/plain;q=0.9, application/json;q=0.9, */*;q=0.1",
            trusted=trusted,
        )
    except FetchFailed as error:
        raise ToolError(str(error)) from None
    title, text = _read(page)
    if page.status >= 400:  # noqa: PLR2004 - HTTP's own number
        raise ToolError(f"the server answered {page.status_text}: {text[:300]}".rstrip(": "))
    part = text[start : start + max_chars]
    return {
        "url": page.address,
        "status": page.status,
        "content_type": page.content_type,
        "title": title,
        "text": part,
        "total_chars": len(text),
        "complete": page.complete and len(part) == len(text),
    }


def _read(page: Page) -> tuple[str | None, str]:
    """Its title, where it has one, and its text."""
    kind = page.content_type.lower()
    if kind and not _IS_TEXT.fullmatch(kind):
        if page.status >= 400:  # noqa: PLR2004
            return None, ""
        raise ToolError(f"that is {kind[:80]} ({len(page.body)} bytes or more), and no text")
    if b"\0" in page.body[:8192] and "16" not in (page.charset or ""):
        raise ToolError("that is binary, and no text")
    charset = (page.charset or "utf-8").lower()
    text = page.body.decode(charset if _CHARSETS.fullmatch(charset) else "utf-8", "replace")
    return text_of_html(text) if kind in _IS_HTML else (None, text)
