"""What people say about background work, as rules (see notation.py). English only.

Verbs × things × what stands around them. A message that asks for anything more than the rules say
is not read, since every word needs its place: that is the guard against all that also has a *job*,
a *task* or a *stop* in it. A second one is here: what *the … job* cannot be called.
"""

from backburner.tools.intents import words
from backburner.tools.intents.notation import Grammar
from backburner.tools.intents.requests import LIST, OUTPUT, STATUS, STOP
from backburner.tools.intents.things import AROUND, THINGS

RULES = {**AROUND, **THINGS, **STOP, **OUTPUT, **LIST, **STATUS}

_FUNCTION_WORDS = """
    a an and or but not if when while until unless after before as at by of to for from with without
    in into on onto about than then because nor i you he she it we they me him her us them your his
    its their there here who whom whose what which why how where do does did be am is are was were
    been have has had will would shall should can could may might must let no yes very really
    other another same such some any only next
"""
_EMPLOYMENT = """
    day night dream summer winter holiday weekend part-time full-time side new old better best good
    great bad worse worst nice excellent perfect amazing first second third real steady remote paid
    well-paid odd easy hard tough big small whole nose paint hand blow snow inside office desk temp
    temporary permanent future former steve con student teaching government nursing cleaning
    driving delivery sales marketing engineering developer engineer teacher manager acting modeling
"""
_ELSEWHERE = """
    cron crontab kubernetes k8s slurm print printer printing jenkins github gitlab ci circleci spark
    hadoop airflow celery sidekiq systemd windows launchd aws azure gcp lambda databricks
    todo to-do homework school household jira trello asana calendar daily weekly
"""
_LATER = """
    tomorrow today tonight yesterday later soon sometime morning afternoon evening midnight noon
    monday tuesday wednesday thursday friday saturday sunday
"""
NEVER_NAMES = frozenset(f"{_FUNCTION_WORDS} {_EMPLOYMENT} {_ELSEWHERE} {_LATER}".split())
"""What stands before *job* or *task* where these are somebody's employment, the work of another
system or a list of things to do; and times, which ask for more than we do."""


def _literals() -> frozenset[str]:
    parts = (part for phrases in RULES.values() for phrase in phrases for part in phrase.split())
    return frozenset(word for part in parts for word in part.rstrip("?*").split("|"))


_LONG_WORDS = frozenset(
    word for phrase in RULES["LONG"] for part in phrase.split() for word in part.split("|")
) - {"run"}
_TAKEN = (_literals() | NEVER_NAMES) - _LONG_WORDS


def is_name(word: str) -> bool:
    """What a task may be called in such a message: no word that means something here."""
    return word not in _TAKEN and words.is_plain(word)


TESTS = {
    "PAUSE": words.PAUSE.__eq__,
    "MENTION": words.is_mention,
    "QUESTION": words.QUESTION.__eq__,
    "ID": words.is_id,
    "NUMBER": words.is_number,
    "COUNT": words.is_number,
    "LABEL": words.is_label,
    "QUOTED": words.is_quotation,
    "NAME": is_name,
}
KEPT = frozenset(
    {"ID", "NUMBER", "LABEL", "QUOTED", "NAME", "LONG", "NEWEST", "OLDEST", "ALL", "MANY"}
    | {"ACTIVE", "QUEUED", "FAILED", "ENDED"}
)
"""What says which task is meant."""

GRAMMAR = Grammar(RULES, TESTS, KEPT)
