"""What people write, and what it asks for of background work. The table is the specification.

A phrase a line in phrases/, a file for each answer; case, punctuation and politeness as people
use them.
"""

from pathlib import Path

from backburner.intents import Intent

_FOLDER = Path(__file__).parent / "phrases"

_TOO_LONG = [
    "stop the job " * 6,
    "Stop the job. Stop the job. Stop the job. Stop the job. Stop the job. Stop the job.",
    "Please stop the job, because I have found a mistake in the script and want to fix it first.",
    "I have been thinking about what you said yesterday and I believe that you should stop the job",
    "list my jobs" + " please" * 100,
    "stop the job" + "!" * 1000,
    "is the job done" + "?" * 1000,
]


def _phrases(answer: str) -> list[str]:
    return (_FOLDER / f"{answer}.txt").read_text(encoding="utf-8").splitlines()


PHRASES: list[tuple[str, Intent | None]] = [
    *((phrase, intent) for intent in Intent for phrase in _phrases(intent)),
    *((phrase, None) for phrase in [*_phrases("none"), *_TOO_LONG]),
]
