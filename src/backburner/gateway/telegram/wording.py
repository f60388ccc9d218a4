"""A post as Telegram takes it: text, entities that say where code is, and a keyboard. Pure."""

from collections.abc import Sequence

import telegram

from backburner.gateway.markup import Block, Code, pieces_of, sendable, utf16_units
from backburner.gateway.platform import Button


def formatted(text: str) -> tuple[str, list[telegram.MessageEntity]]:
    """The text without its markup, and where the code in it is: nothing has to be escaped."""
    said = ""
    entities: list[telegram.MessageEntity] = []
    for piece in pieces_of(sendable(text)):
        if isinstance(piece, Code | Block) and piece.text:
            language = piece.language if isinstance(piece, Block) else ""
            entities.append(
                telegram.MessageEntity(
                    telegram.MessageEntity.PRE
                    if isinstance(piece, Block)
                    else telegram.MessageEntity.CODE,
                    utf16_units(said),
                    utf16_units(piece.text),
                    language=language or None,
                )
            )
        said += piece.text
    return (said, entities) if said.strip() else (sendable(text), [])


def keyboard(buttons: Sequence[Button]) -> telegram.InlineKeyboardMarkup | None:
    """The buttons in a row; None for none."""
    if not buttons:
        return None
    row = [telegram.InlineKeyboardButton(each.label, callback_data=each.action) for each in buttons]
    return telegram.InlineKeyboardMarkup([row])
