"""Who is measured beside us, how each is set up, and what it keeps when the power is cut.

`python -m bench.peers.catalogue` prints the packages, for scripts/constraints.sh. So this imports
nothing but the standard library.
"""

from dataclasses import dataclass, field
from typing import Literal

Server = Literal["redis", "redis, each write on disk", "postgres"]

RUNS = 5000
FEWER = 2000
"""For those that take ten seconds and more for 5,000: what is compared is the rate."""

_IN_MEMORY = (
    "power cut: LOSES all of it (no append-only file, as Redis comes; here no snapshots too)"
)


@dataclass(frozen=True, slots=True)
class Peer:
    """One system in one configuration."""

    name: str
    program: str
    """Its module among the programs."""
    packages: tuple[str, ...]
    durability: str
    keeps: str
    """What of a run is kept after its end."""
    server: Server | None = None
    """None: it keeps its record in a file of its own."""
    runs: int = RUNS
    at_least: float | None = 1.0
    """How many times its rate ours has to be; None for one that is there to be seen."""
    settings: dict[str, str] = field(default_factory=dict[str, str])


_DRAMATIQ = Peer(
    "Dramatiq (Redis)",
    "dramatiq_redis",
    ("dramatiq[redis]",),
    _IN_MEMORY,
    "nothing",
    "redis",
)
_HUEY = Peer(
    "Huey (SQLite)",
    "huey_sqlite",
    ("huey",),
    "power cut: keeps what waits and what has ended (WAL, synchronous=FULL, as it comes); a run "
    "that a worker has taken is LOST without a trace, also when only the worker is killed",
    "the result",
)

PEERS = (
    _DRAMATIQ,
    _HUEY,
    Peer("Docket (Redis)", "docket_redis", ("pydocket",), _IN_MEMORY, "state and result", "redis"),
    Peer(
        "Celery (Redis)",
        "celery_redis",
        ("celery[redis]",),
        _IN_MEMORY,
        "nothing",
        "redis",
        runs=FEWER,
    ),
    Peer(
        "DBOS (SQLite)",
        "dbos_sqlite",
        ("dbos",),
        "power cut: SURVIVES, as ours does (rollback journal, synchronous=FULL, as it comes)",
        "state and result",
        runs=FEWER,
        at_least=5.0,
    ),
    Peer(
        "Procrastinate (Postgres)",
        "procrastinate_postgres",
        ("procrastinate", "psycopg[binary,pool]"),
        "power cut: SURVIVES, as ours does (fsync and synchronous_commit on, as it comes)",
        "state and events, no result",
        "postgres",
        runs=FEWER,
        at_least=5.0,
    ),
    Peer(
        "Dramatiq (Redis, each write on disk)",
        _DRAMATIQ.program,
        _DRAMATIQ.packages,
        "power cut: SURVIVES (appendonly yes, appendfsync always; not as it comes)",
        _DRAMATIQ.keeps,
        "redis, each write on disk",
        at_least=None,
    ),
    Peer(
        "Huey (SQLite, fsync off)",
        _HUEY.program,
        _HUEY.packages,
        "power cut: LOSES the last runs, and can damage the file (synchronous=OFF; not as it "
        "comes)",
        _HUEY.keeps,
        at_least=None,
        settings={"PEER_FSYNC": "off"},
    ),
)


if __name__ == "__main__":
    print("\n".join(sorted({package for peer in PEERS for package in peer.packages})))
