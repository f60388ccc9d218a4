"""The text of an HTML page: what a person would read, without scripts, styles and markup.

Not `html.parser`, whose time grows with the square of the size of some pages, and pages are
hostile. Here every character is looked at a fixed number of times.
"""

import re
from html import unescape

_LEFT_OUT = frozenset({"script", "style", "noscript", "template", "svg"})
_BREAKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "br", "dd", "div", "dl", "dt", "figure"}
    | {"fieldset", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li"}
    | {"main", "nav", "ol", "option", "p", "pre", "section", "table", "td", "th", "tr", "ul"}
)
_TITLE_MAX_CHARS = 300

_TAG = re.compile(r"</?+([A-Za-z][A-Za-z0-9]*+)|<[!?/]")
_LONG_NUMBER = re.compile(r"&#x?+[0-9a-fA-F]{9,}+;?+")
"""No character has it, and Python refuses to read a number of many digits."""


def text_of_html(page: str) -> tuple[str | None, str]:
    """The title, where there is one, and the text, a line for each block."""
    pieces: list[str] = []
    title = ""
    for tag, text in _pieces(page):
        if tag == "title" and not title:
            title = " ".join(_plain(text).split())[:_TITLE_MAX_CHARS]
            continue
        if tag in _BREAKS:
            pieces.append("\n")
        pieces.append(" ".join(text.split("\n")))
    lines = (" ".join(line.split()) for line in _plain("".join(pieces)).split("\n"))
    return title or None, re.sub(r"\n{3,}+", "\n\n", "\n".join(lines)).strip()


def _pieces(page: str) -> list[tuple[str, str]]:
    """Each tag by its name, with the text that follows it; the first has none."""
    lower = page.lower() if len(page.lower()) == len(page) else page  # İ becomes two
    found: list[tuple[str, str]] = []
    never_closed: set[str] = set()
    tag, here = "", 0
    while True:
        opening = _TAG.search(page, here)
        if opening is None:
            return [*found, (tag, page[here:])]
        found.append((tag, page[here : opening.start()]))
        tag = (opening[1] or "").lower()
        comment = page.startswith("<!--", opening.start())
        end = page.find("-->" if comment else ">", opening.end())
        if end < 0:
            return found  # the rest is one tag that nobody closed
        here = end + (3 if comment else 1)
        if tag in _LEFT_OUT and tag not in never_closed and page[opening.start() + 1] != "/":
            closing = lower.find(f"</{tag}", here)
            if closing < 0:
                never_closed.add(tag)
            else:
                here = closing


def _plain(text: str) -> str:
    return unescape(_LONG_NUMBER.sub("\ufffd", text))
