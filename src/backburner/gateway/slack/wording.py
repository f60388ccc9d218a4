"""A post as Slack takes it, and what people wrote as they meant it. Pure."""

import html
import re
from collections.abc import Sequence
from typing import Any

from backburner.gateway.markup import Block, Code, Plain, fenced, pieces_of, sendable, unfenced
from backburner.gateway.platform import Button

ACTION = "backburner"
"""How the names of our buttons begin."""

_MARKED = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def worded(text: str) -> str:
    """The text, with what Slack would take for a mention or a link as plain characters."""
    return "".join(_piece(piece) for piece in pieces_of(sendable(text)))


def measured(text: str) -> int:
    """How long it will be, escaped."""
    return len(worded(text))


def _piece(piece: Plain | Code | Block) -> str:
    match piece:
        case Plain(text):
            return html.escape(unfenced(text), quote=False)
        case Code(text):
            return f"`{html.escape(text, quote=False)}`"
        case Block(text):
            # Without its language: Slack would show it as the first line of the code.
            return html.escape(fenced(Block(text, "")), quote=False)


def blocks_of(text: str, buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """The text with buttons below it; empty where there are none, and the text is enough."""
    if not buttons:
        return []
    said = {"type": "mrkdwn", "text": worded(text) or "\u200b", "verbatim": True}
    elements = [
        {
            "type": "button",
            "action_id": f"{ACTION}-{number}",
            "text": {"type": "plain_text", "text": each.label},
            "value": each.action,
        }
        for number, each in enumerate(buttons)
    ]
    return [{"type": "section", "text": said}, {"type": "actions", "elements": elements}]


def unmarked(text: str) -> str:
    """What somebody wrote, without Slack's marks for links, people and channels."""
    return html.unescape(_MARKED.sub(_plainly, text))


def _plainly(found: re.Match[str]) -> str:
    what, label = found[1], found[2]
    if what[:1] in {"@", "#", "!"}:
        return f"{'@' if what[0] == '!' else what[0]}{label or what[1:]}"
    return what.removeprefix("mailto:")
