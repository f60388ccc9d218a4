"""A message as words: lower case, contractions written out, punctuation as two signs. Pure.

`,` stands for everything that parts a sentence, `?` for itself, and a quotation is one word that
begins with `"`. What a person would not write in such a message stays a word that no rule knows.
"""

import re
import unicodedata

from backburner.model.ids import ALPHABET, PREFIX, is_valid

MOST_CHARACTERS = 300
MOST_WORDS = 15
"""Beyond either a message is about more than one task, and a model should read it."""

PAUSE = ","
QUESTION = "?"
QUOTE = '"'

_SPLIT = re.compile(
    r"""
      "(?P<double>[^"]+)"
    | `(?P<code>[^`]+)`
    | (?<!\w)'(?P<single>[^']+)'(?!\w)
    | (?P<question>[?]+)
    | (?P<word>[\w#%@+/~$&=*<>|\\^{}\[\]-]+ (?:[.:'][\w/-]+)*)
    | (?P<other>\S)
    """,
    re.VERBOSE,
)

_PLAIN = re.compile(r"\w[\w.+/:-]{0,63}")

_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_PAUSES = frozenset(".,!;:…()")
_DASHES = frozenset("-–—")

_WRITTEN_OUT = {
    "what's": ("what", "is"),
    "whats": ("what", "is"),
    "how's": ("how", "is"),
    "hows": ("how", "is"),
    "how're": ("how", "are"),
    "what're": ("what", "are"),
    "which's": ("which", "is"),
    "that's": ("that", "is"),
    "let's": ("let", "us"),
    "i'd": ("i", "would"),
    "nevermind": ("never", "mind"),
    "pls": ("please",),
    "plz": ("please",),
}


def words_of(text: str) -> list[str] | None:
    """The words of a short message; None where it is too long to be one, or has none."""
    text = text.strip()
    if not text or len(text) > MOST_CHARACTERS:
        return None
    words: list[str] = []
    for match in _SPLIT.finditer(text.translate(_STRAIGHT)):
        found = _words_in(match)
        if found != (PAUSE,) or words[-1:] != [PAUSE]:  # a row of dots is one pause
            words += found
    spoken = sum(word not in {PAUSE, QUESTION} for word in words)
    return words if 0 < spoken <= MOST_WORDS and len(words) <= 2 * MOST_WORDS else None


def _words_in(match: re.Match[str]) -> tuple[str, ...]:
    piece = match.group()
    kind = match.lastgroup
    if kind == "question":
        return (QUESTION,)
    if kind == "word" and not set(piece) <= _DASHES:
        return _plain(piece.casefold())
    if kind in {"double", "code", "single"}:
        return (QUOTE + " ".join(piece[1:-1].casefold().split()),)
    if piece in _PAUSES or set(piece) <= _DASHES:
        return (PAUSE,)
    return () if piece == "'" or _is_picture(piece) else (piece,)


def _plain(word: str) -> tuple[str, ...]:
    if word in _WRITTEN_OUT:
        return _WRITTEN_OUT[word]
    stem = word.removesuffix("'s")
    return (word,) if stem == word else (stem, "'s")


def _is_picture(character: str) -> bool:
    """Emoji, and what changes their look."""
    return unicodedata.category(character) in {"So", "Sk", "Mn", "Cf"}


def is_mention(word: str) -> bool:
    """Whom the message is for, in a chat of many: `@backburner`."""
    return word.startswith("@") and len(word) > 1


def is_id(word: str) -> bool:
    """An id as we give them out, or the beginning of one: `bg_color` is none, by its alphabet."""
    rest = word.removeprefix(PREFIX)
    return rest not in {word, ""} and set(rest) <= set(ALPHABET)


def is_number(word: str) -> bool:
    """`3`, `#3`, and what a shell calls its jobs, `%1`."""
    digits = word.removeprefix("#").removeprefix("%")
    return digits.isascii() and digits.isdecimal()


def is_label(word: str) -> bool:
    """What looks more like an id that somebody chose than like a word: `build-7`, `nightly_2`."""
    return is_valid(word) and not word.isalpha()


def is_quotation(word: str) -> bool:
    """What stood in quotation marks."""
    return word.startswith(QUOTE) and len(word) > len(QUOTE)


def is_plain(word: str) -> bool:
    """A word as in a title or a command: `pytest`, `next.js`, `café`."""
    return _PLAIN.fullmatch(word) is not None
