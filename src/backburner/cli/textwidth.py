"""Text in the columns of a terminal: made safe, measured and cut. Pure."""

ELLIPSIS = "…"


def clean(text: str) -> str:
    """One line without anything that a terminal would obey."""
    if text.isprintable():
        return text.rstrip()
    from backburner.work.log.fold import strip_controls  # seldom needed, and slow to load

    return "".join(
        character if character.isprintable() or character == "\u200d" else "\ufffd"
        for character in strip_controls(text)
    )


def columns_of(text: str) -> int:
    """How many columns a terminal needs for it."""
    if text.isascii():
        return len(text)
    return sum(_columns_of_character(character) for character in text)


def _columns_of_character(character: str) -> int:
    import unicodedata

    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0  # drawn over its neighbour
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def cut(text: str, columns: int) -> str:
    """The text within that many columns, an ellipsis where it was cut."""
    if columns_of(text) <= columns:
        return text
    if columns < 1:
        return ""
    kept: list[str] = []
    left = columns - 1
    for character in text:
        left -= _columns_of_character(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + ELLIPSIS
