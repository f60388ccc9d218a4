"""A post as Discord takes it: code as it is, everything else escaped, and buttons. Pure."""

import re
from collections.abc import Sequence

import discord

from backburner.gateway.markup import Block, Code, Plain, fenced, pieces_of, sendable, utf16_units
from backburner.gateway.platform import Button

# Addresses stay whole, or they could not be followed. Linear, whatever the text is.
_MARKUP = re.compile(
    r"(?P<kept>https?://[^\s<>]+)|(?P<escaped>[\\*_~|`\[\]<]|^[ \t]*[#>+-])", re.MULTILINE
)


def worded(text: str) -> str:
    """The text, so that Discord shows it as it is meant."""
    return "".join(_piece(piece) for piece in pieces_of(sendable(text)))


def measured(text: str) -> int:
    """How long it will be, escaped, as Discord counts at most."""
    return utf16_units(worded(text))


def _piece(piece: Plain | Code | Block) -> str:
    match piece:
        case Plain(text):
            return _MARKUP.sub(_escaped, text)
        case Code(text):
            return f"`{text}`"
        case Block():
            return fenced(piece)


def _escaped(found: re.Match[str]) -> str:
    if found["kept"] is not None:
        return found["kept"]
    mark = found["escaped"]
    return f"{mark[:-1]}\\{mark[-1]}"


def view_of(buttons: Sequence[Button]) -> discord.ui.View | None:
    """The buttons in rows; None for none."""
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for each in buttons:
        view.add_item(discord.ui.Button[discord.ui.View](label=each.label, custom_id=each.action))
    view.stop()  # presses are heard as they come: the library need not remember it
    return view
