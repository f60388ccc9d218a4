"""A long text as several posts, each within the limits of its platform.

Blocks of code stay whole where they fit into a post; others are closed and opened again with
their language. Pure, and it ends for any text, limit and measure: every step takes at least one
character. What is longer than a limit by itself (one character, of a limit of none) is left out.
"""

from collections.abc import Callable, Sequence

from backburner.gateway.markup import Block, Plain, blocks_of, fenced
from backburner.gateway.platform import Limits

_LEAST_FILLED = 3
"""A cut at a nice place leaves a post filled to at least one part in so many."""


def cut(text: str, limits: Limits) -> list[str]:
    """The texts of the posts, in order; none of them is blank."""

    def fits(candidate: str) -> bool:
        return limits.measure(candidate) <= limits.text

    if fits(text):
        return [text] if text.strip() else []
    posts = _Posts(fits, limits.text)
    parts = blocks_of(text)
    texts = [fenced(part) if isinstance(part, Block) else part.text for part in parts]
    done = 0
    while (done := done + posts.append_some(texts, done)) < len(parts):
        part = parts[done]
        if isinstance(part, Block):
            posts.add_block(part)
        else:
            posts.add_words(part)
        done += 1
    return posts.finished()


class _Posts:
    """The posts that are full, and the one that is being filled."""

    def __init__(self, fits: Callable[[str], bool], most: int) -> None:
        self._fits = fits
        self._most = most
        self._full: list[str] = []
        self._filling: str | None = None

    def finished(self) -> list[str]:
        self._close()
        return self._full

    def append_some(self, texts: Sequence[str], first: int) -> int:
        """As many of them, from the first on, as fit into the post that is being filled.

        Tried by twos, fours and so on: to measure a post for each of a thousand blocks takes long.
        """
        taken, step = 0, 1
        while step:
            some = texts[first + taken : first + taken + step]
            if some and self._append("\n".join(some)):
                taken += len(some)
                step *= 2
            else:
                step //= 2
        return taken

    def add_words(self, words: Plain) -> None:
        if self._append(words.text):
            return
        rest = words.text
        while rest:
            # What is being filled takes lines only: a word is not cut for the room that is left.
            begun = "" if self._filling is None else self._filling + "\n"
            taken = self._longest(
                rest, lambda text, begun=begun: begun + text, nice_only=bool(begun)
            )
            if taken:
                self._filling = begun + rest[:taken].rstrip("\n")
                rest = rest[taken:]
                if rest:
                    self._close()
            elif begun:
                self._close()
            else:
                rest = rest[1:]  # not even this character fits

    def add_block(self, block: Block) -> None:
        whole = fenced(block)
        if self._append(whole):
            return
        self._close()
        if self._append(whole):
            return

        def wrapped(text: str) -> str:
            return fenced(Block(text.removesuffix("\n"), block.language))

        rest = block.text
        if not self._fits(wrapped("\U0001f600")):
            self.add_words(Plain(rest))  # not even the fences fit around something
            return
        while rest:
            taken = self._longest(rest, wrapped)
            if not taken:
                rest = rest[1:]
                continue
            self._filling = wrapped(rest[:taken])
            rest = rest[taken:]
            if rest:
                self._close()

    def _append(self, text: str) -> bool:
        longer = text if self._filling is None else f"{self._filling}\n{text}"
        if not self._fits(longer):
            return False
        self._filling = longer
        return True

    def _close(self) -> None:
        if self._filling is not None and (post := self._filling.strip("\n")).strip():
            self._full.append(post)
        self._filling = None

    def _longest(self, text: str, shaped: Callable[[str], str], *, nice_only: bool = False) -> int:
        """How many characters of the text fit, shaped as they will be, up to a nice place."""
        low, high = 0, min(len(text), self._most)
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(shaped(text[:middle])):
                low = middle
            else:
                high = middle - 1
        if low == len(text):
            return low
        for end in ("\n\n", "\n", " "):
            if end == " " and nice_only:
                return 0
            place = text.rfind(end, 0, low)
            if place >= 0 and (nice_only or place >= low // _LEAST_FILLED):
                nice = place + len(end)
                if self._fits(shaped(text[:nice])):
                    return nice
        return 0 if nice_only else low
