"""Comparing what a person sees with files under golden/, after hiding what changes by itself.

`UPDATE_GOLDEN=1 pytest tests/cli` writes the files anew; look at the difference before you commit.
"""

import os
import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"

_ID = re.compile(r"\bbg_[0-9a-hjkmnp-tv-z]{16}\b")
_BASH = re.compile(r"(?:/usr)?/bin/bash\b")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b")
_DURATION = re.compile(r"(?<!\[)\b\d+(?:\.\d)?[smhd](?: \d+[smh])?\b")
# On a busy machine 9.9s becomes 10s, which is a column less: at the right of a column a blank more.
_TENS_OF_SECONDS = re.compile(r"(?:(?<=  ) (?=\+?\d\ds  ))?(\+?)\b\d\ds\b")
_MINUTES_AGO = re.compile(r"\b\d+m \d+s(?= ago)")
_AGES = re.compile(r"\b(?:AGE|ENDED)\b")
_AGE = re.compile(r"\d+(?:\.\d)?s(?: ago)?$")
_PROCESS = re.compile(r"^ +\d+ +\d+ % +[\d.,]+ \w+ +[\d.]+s  (.*)$", re.MULTILINE)
_PROCESS_HEAD = re.compile(r"^ +PID +CPU +MEMORY +TIME  COMMAND$", re.MULTILINE)


class Golden:
    """Holds what is shown to what was agreed on."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def check(self, name: str, text: str, *, exact: bool = False) -> None:
        """The text is that of the file; what changes by itself may differ, unless ``exact``."""
        shown = text if exact else self.steady(text)
        path = FOLDER / f"{name}.txt"
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(shown, encoding="utf-8")
        agreed = path.read_text(encoding="utf-8") if path.exists() else "(there is no such file)"
        assert shown == agreed, f"not as in {path}; UPDATE_GOLDEN=1 writes it anew"

    def steady(self, text: str) -> str:
        """Without ids, times, durations, pids and paths; of the same width where that matters."""
        for path, name in self._paths.items():
            text = text.replace(path, name)
        ids = list(dict.fromkeys(_ID.findall(text)))
        for number, found in enumerate(ids, 1):
            text = text.replace(found, f"bg_{number:016d}")
        text = _BASH.sub("bash", text)
        text = _PROCESS_HEAD.sub("  PID  CPU  MEMORY  TIME  COMMAND", text)
        text = _PROCESS.sub(r"  PID  # %  # MB  #s  \1", text)
        text = _with_wide_ages(text)
        text = _MINUTES_AGO.sub("#.#s", text)
        text = _TENS_OF_SECONDS.sub(r"\1#.#s", text)
        for volatile in (_MOMENT, _DURATION):
            text = volatile.sub(lambda match: re.sub(r"\d", "#", match[0]), text)
        return text


def _with_wide_ages(text: str) -> str:
    """A column of which no time is below ten seconds is narrower by one: as wide as it usually is.

    Times stand at the right of their columns, below the ends of their titles.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for title in reversed([*_AGES.finditer(line)]):
            end = title.end()
            below = (_AGE.search(row[:end]) for row in lines[number + 1 :])
            ages = [age[0] for age in takewhile(lambda age: age is not None, below) if age]
            if ages and not any("." in age for age in ages):
                start = end - len(ages[0])
                for row in range(number, number + 1 + len(ages)):
                    lines[row] = f"{lines[row][:start]} {lines[row][start:]}"
    return "\n".join(lines)
