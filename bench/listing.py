"""The newest 50 tasks of a session with 1,000,000 finished tasks in the store, and with 100.

warm  through an open Backburner, whose connection has the pages it needs
cold  with a new reader each time, as every `backburner ls` has; the pages come from the kernel
The stores are filled with plain SQL, in one transaction, without waiting for the disk.
"""

import time
from pathlib import Path

from backburner import Backburner, Session
from backburner.model.home import Home
from backburner.store.protocol import Scope
from backburner.store.sqlite.reader import Reader
from bench import bare
from bench.measure import Effort, Row, Target, in_turn, percentile

TARGET = Target("at most", 3)
FEW = 100
NEWEST = 50
_REPEATS = 100

_FILL = """
CREATE TEMP TABLE made AS
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
SELECT n, 'bg_' || lower(hex(randomblob(8))) AS id FROM number;

INSERT INTO task (seq, id, owner, session, kind, title, spec, state, created_at, started_at,
                  finished_at, max_runtime_s, exit_code, boot_id, started_boot, pid, output_bytes,
                  events)
SELECT n, id, 'local', 'bench', 'shell', 'pytest -q tests/number_' || n,
       '{"command":"pytest -q tests/number_' || n || '","cwd":"/home/ada/project","env":{},'
       || '"separate_stderr":false,"log":[262144,1048576]}',
       'succeeded', 1700000000000000 + n, 1700000000001000 + n, 1700000000900000 + n, 3600, 0,
       'boot', n, n % 32768, n % 5000, 3
FROM made;

INSERT INTO event (task, number, at, kind, data)
SELECT n, number, 1700000000000000 + n, kind, data FROM made,
       (SELECT 1 AS number, 'created' AS kind, '{}' AS data
        UNION ALL SELECT 2, 'started', '{"attempt":1}'
        UNION ALL SELECT 3, 'finished', '{"state":"succeeded","exit_code":0}')
ORDER BY n;

INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, created_at,
                    delivered_at)
SELECT id || ':end', n, 'local', 'bench', 'completed',
       'pytest -q tests/number_' || n || ' (' || id || ') finished after 0.9s',
       '{"state":"succeeded","exit_code":0}', 'delivered', 'inbox', 1700000000900000 + n,
       1700000000950000 + n
FROM made;

DROP TABLE made;
"""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """Warm and cold."""
    many = effort.count(1_000_000)
    began = time.perf_counter()
    for name, count in (("many", many), ("few", FEW)):
        await fill(folder / name, count)
    notes = [f"{many:,} tasks against {FEW}; filled in {time.perf_counter() - began:.0f} s"]
    async with Backburner.open(folder / "many") as large, Backburner.open(folder / "few") as small:
        warm = await in_turn(
            lambda: _warm(large.session("bench")),
            lambda: _warm(small.session("bench")),
            effort.rounds,
        )
        cold = await in_turn(
            lambda: _cold(folder / "many"), lambda: _cold(folder / "few"), effort.rounds
        )
    return [
        warm.row("newest 50 of a million, warm", "ms", scale=1e3, target=TARGET, notes=notes),
        cold.row("newest 50 of a million, cold", "ms", scale=1e3, target=TARGET),
    ]


async def fill(home: Path, count: int) -> None:
    """A home with so many finished tasks, each with its three events and its signal."""
    async with Backburner.open(home):
        pass  # makes the record
    database = bare.Database(
        Home(home).database, "synchronous = OFF", "cache_size = -1000000", "foreign_keys = OFF"
    )
    database.execute(f"BEGIN; {_FILL} COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", {"count": count})
    database.close()


async def _warm(session: Session) -> float:
    times: list[float] = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        tasks = await session.tasks(limit=NEWEST)
        times.append(time.perf_counter() - began)
        _expect(len(tasks))
    return percentile(times, 0.5)


async def _cold(home: Path) -> float:
    times: list[float] = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        reader = Reader(Home(home).database)
        tasks = reader.newest(Scope("local", "bench"), limit=NEWEST)
        reader.close()
        times.append(time.perf_counter() - began)
        _expect(len(tasks))
    return percentile(times, 0.5)


def _expect(count: int) -> None:
    if count != NEWEST:
        raise RuntimeError(f"{count} tasks were listed, not {NEWEST}")
