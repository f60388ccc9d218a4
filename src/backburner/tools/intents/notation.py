"""A small notation for phrases, and the reader of it. Pure; knows nothing of what they mean.

A rule has a name in capitals and a list of phrases. In a phrase `a|b` is one of two words, a name
in capitals is another rule or a test of one word, `?` at the end means that it may be missing, `*`
that it may come any number of times. A message is read only if every word of it has its place.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from backburner.model.values import value

Found = tuple[tuple[str, str], ...]
"""What stood in the places that are kept: the rule, and the words there, in their order."""

_Ends = dict[int, Found]
"""Where a rule can end, and what was found on the way there."""


@value
class _Part:
    options: tuple[str, ...]
    optional: bool
    repeated: bool

    @classmethod
    def of(cls, text: str) -> "_Part":
        bare = text.rstrip("?*")
        marks = text[len(bare) :]
        return cls(tuple(bare.split("|")), optional=bool(marks), repeated="*" in marks)


class Grammar:
    """Rules in this notation, ready to read with."""

    def __init__(
        self,
        rules: Mapping[str, Sequence[str]],
        tests: Mapping[str, Callable[[str], bool]],
        kept: Collection[str],
    ) -> None:
        self.phrases = {
            name: [tuple(map(_Part.of, phrase.split())) for phrase in phrases]
            for name, phrases in rules.items()
        }
        self.tests = tests
        self.kept = kept

    def read(self, rule: str, words: Sequence[str]) -> Found | None:
        """What is kept of ``words`` read as ``rule``; None where they are something else."""
        return _Reading(self, words).ends(rule, 0).get(len(words))


class _Reading:
    """One message. Each rule is tried once at each word, so that time is bounded by the square of
    the number of words, whatever they are."""

    def __init__(self, grammar: Grammar, words: Sequence[str]) -> None:
        self._grammar = grammar
        self._words = words
        self._known: dict[tuple[str, int], _Ends] = {}

    def ends(self, name: str, start: int) -> _Ends:
        known = self._known.get((name, start))
        if known is None:
            known = dict[int, Found]()
            for phrase in self._grammar.phrases[name]:
                reached: _Ends = {start: ()}
                for part in phrase:
                    reached = self._after(part, reached)
                for end, found in reached.items():
                    known.setdefault(end, self._keep(name, start, end, found))
            self._known[name, start] = known
        return known

    def _after(self, part: _Part, reached: _Ends) -> _Ends:
        result = dict(reached) if part.optional else {}
        edge = reached
        while edge:
            further: _Ends = {}
            for start, found in edge.items():
                for option in part.options:
                    for end, more in self._option(option, start).items():
                        if end not in result:
                            further.setdefault(end, found + more)
            result |= further
            edge = further if part.repeated else {}
        return result

    def _option(self, option: str, start: int) -> _Ends:
        if option in self._grammar.phrases:
            return self.ends(option, start)
        if start == len(self._words):
            return {}
        word = self._words[start]
        test = self._grammar.tests.get(option)
        if not (word == option if test is None else test(word)):
            return {}
        return {start + 1: self._keep(option, start, start + 1, ())}

    def _keep(self, name: str, start: int, end: int, found: Found) -> Found:
        if name not in self._grammar.kept:
            return found
        return ((name, " ".join(self._words[start:end])), *found)
