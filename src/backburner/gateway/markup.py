"""The markup of a post, read: plain text, `code` and ``` blocks, and nothing else.

The only place that knows what a fence is: the platforms show what is found here each in its own
way, and `splitting` cuts where it says. Pure, and it takes any text: a fence that is not closed
reaches to the end.
"""

import re

from backburner.model.values import value

FENCE = "```"

_OPENING = re.compile(r"(`{3,})[ \t]*([\w+#.-]*)[ \t]*")
_INLINE = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]+)\1(?!`)")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_THIRD_TICK_FOLLOWS = re.compile(r"`(?=``)")


@value
class Plain:
    """Words, as they are."""

    text: str


@value
class Code:
    """A few words of code within a line."""

    text: str


@value
class Block:
    """Lines of code, without their fences."""

    text: str
    language: str


Piece = Plain | Code | Block


def blocks_of(text: str) -> list[Plain | Block]:
    """The text as whole lines of words and blocks by turns; a block's last line end is its own."""
    found: list[Plain | Block] = []
    plain: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if (opening := _OPENING.fullmatch(line)) is None:
            plain.append(line)
            continue
        if plain:
            found.append(Plain("\n".join(plain)))
            plain = []
        inside: list[str] = []
        for inner in lines:
            if _closes(inner, opening[1]):
                break
            inside.append(inner)
        found.append(Block("\n".join(inside), opening[2]))
    if plain:
        found.append(Plain("\n".join(plain)))
    return found


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t")
    return len(bare) >= len(fence) and not bare.strip("`")


def pieces_of(text: str) -> list[Piece]:
    """The same with `code` told from the words around it, and the line ends between them."""
    found: list[Piece] = []
    for number, part in enumerate(blocks_of(text)):
        if number:
            found.append(Plain("\n"))
        if isinstance(part, Block):
            found.append(part)
            continue
        done = 0
        for code in _INLINE.finditer(part.text):
            if code.start() > done:
                found.append(Plain(part.text[done : code.start()]))
            found.append(Code(code[2]))
            done = code.end()
        if done < len(part.text):
            found.append(Plain(part.text[done:]))
    return found


def fenced(block: Block) -> str:
    """The block as text again, with fences that nothing in it can be taken for.

    Platforms know fences of three only, and end a block at the next three wherever they are.
    """
    return f"{FENCE}{block.language}\n{unfenced(block.text)}\n{FENCE}"


def unfenced(text: str) -> str:
    """The text with an invisible space between ticks, so that no three of them are together."""
    return _THIRD_TICK_FOLLOWS.sub("`\u200b", text)


def only_block(text: str) -> Block | None:
    """The block that a text is; None where it is anything else, or more than one block."""
    stripped = text.strip()
    inside = stripped.rstrip("`")
    closing = stripped[len(inside) :]  # perhaps at the end of the last line: people write so
    if len(closing) < len(FENCE):
        return None
    found = blocks_of("\n".join([inside.removesuffix("\n"), closing]))
    return found[0] if len(found) == 1 and isinstance(found[0], Block) else None


def utf16_units(text: str) -> int:
    """How long a text is in the units that Telegram and others count in: an emoji is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def sendable(text: str) -> str:
    """The text with a sign for what is no text to a platform: controls and half characters."""
    return _UNSENDABLE.sub("\ufffd", text.replace("\r\n", "\n"))
