"""10,000 parked calls in one process, 32 a session: what each costs, and how soon a stop is heard.

The raw limit is 10,000 bare asyncio tasks that wait in the same way, in a process of their own: its
memory, and the time from `cancel` to the exception in the task. Ours records the stop first.
Each process is fresh (parked_calls.py), so that its growth is that of the calls.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from bench.measure import Effort, Row, Target, percentile

WITHIN_MS = 100.0
"""E7: a cancel reaches the running tool in less."""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """Memory, and the latency of a stop."""
    count = effort.count(10_000)
    ours = await _process(str(count), str(folder / "home"))
    raw = await _process(str(count))
    rows = [
        Row(
            f"memory of each of {count:,} parked calls",
            ours["bytes_each"] / 1024,
            "KB",
            raw=raw["bytes_each"] / 1024,
            ratio=ours["bytes_each"] / raw["bytes_each"],
            notes=[f"parked in {ours['parked_in']:.1f} s, all ended in {ours['ended_in']:.1f} s"],
        )
    ]
    for share, target in ((0.5, None), (0.99, Target("at most", WITHIN_MS, "ms"))):
        own, bare = percentile(ours["reached"], share), percentile(raw["reached"], share)
        rows.append(
            Row(
                f"stop of a parked call, p{share * 100:.0f}",
                own * 1e3,
                "ms",
                raw=bare * 1e3,
                ratio=own / bare,
                target=target,
                notes=[f"of {len(ours['reached'])} stops, while the others stay parked"],
            )
        )
    return rows


async def _process(*arguments: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.parked_calls", *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(600):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"bench.parked_calls failed with {process.returncode}")
    return json.loads(out)
