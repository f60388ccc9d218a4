# Types of google-re2, which ships none: the part that we use.

from collections.abc import Callable, Iterator
from typing import AnyStr, Generic

class error(Exception): ...  # noqa: N801 - its name there

class Options:
    max_mem: int
    posix_syntax: bool
    longest_match: bool
    log_errors: bool
    literal: bool
    never_nl: bool
    dot_nl: bool
    never_capture: bool
    case_sensitive: bool
    perl_classes: bool
    word_boundary: bool
    one_line: bool

# The text decides what comes out, whatever the pattern was given as.
class _Match(Generic[AnyStr]):
    def group(self, group: int | str = 0, /) -> AnyStr | None: ...
    def groups(self) -> tuple[AnyStr | None, ...]: ...
    def groupdict(self) -> dict[str, AnyStr | None]: ...
    def start(self, group: int | str = 0) -> int: ...
    def end(self, group: int | str = 0) -> int: ...
    def span(self, group: int | str = 0) -> tuple[int, int]: ...

class _Regexp:
    @property
    def pattern(self) -> str | bytes: ...
    @property
    def groups(self) -> int: ...
    @property
    def programsize(self) -> int: ...
    def search(
        self, text: AnyStr, pos: int | None = None, endpos: int | None = None
    ) -> _Match[AnyStr] | None: ...
    def match(
        self, text: AnyStr, pos: int | None = None, endpos: int | None = None
    ) -> _Match[AnyStr] | None: ...
    def fullmatch(
        self, text: AnyStr, pos: int | None = None, endpos: int | None = None
    ) -> _Match[AnyStr] | None: ...
    def finditer(
        self, text: AnyStr, pos: int | None = None, endpos: int | None = None
    ) -> Iterator[_Match[AnyStr]]: ...
    def sub(
        self, repl: AnyStr | Callable[[_Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0
    ) -> AnyStr: ...

def compile(pattern: str | bytes | _Regexp, options: Options | None = None) -> _Regexp: ...
def escape(pattern: AnyStr) -> AnyStr: ...
