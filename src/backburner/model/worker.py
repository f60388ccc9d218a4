"""Workers: applications that carry out tools and agents in themselves."""

import secrets

from backburner.model.ids import ALPHABET
from backburner.model.values import value

ATTEMPTS_MAX = 3
"""E11: a run whose worker died is taken up again so often, its first attempt included."""


@value
class Worker:
    """One of them, as the record knows it."""

    id: str
    boot_id: str
    pid: int
    hand_over: str | None = None
    """What a process is started with that takes up its work."""


def new_worker_id() -> str:
    """A name that no other worker has; also that of its lock."""
    return "wk_" + "".join(secrets.choice(ALPHABET) for _ in range(16))
