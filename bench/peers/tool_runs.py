"""5,000 background runs of a tool that does nothing, by 64 callers: ours beside six other systems.

The same machine, the same file system, and in turn: a round of ours, a round of the peer, five of
each. A round is a process of its own that begins with an empty record and does some runs before
the clock starts, so no round is thrown away. See programs/rounds.py for what a round is.

Ours (ours.py) does for each run what it always does: two durable commits, a signal for the session,
and a folder with output.log and result.json, which have to be there when the clock stops. A caller
of ours waits for the end of a run before it starts the next, because a process may have 64 at once;
the others, but for DBOS, are handed runs as fast as they take them. Each is set up as its
documentation says; of the ways that this leaves, the quickest of those that were tried here.

What the peer keeps when the power is cut is under the table, beside what it keeps of a run.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from bench.measure import Effort, Row, Target, in_turn
from bench.peers.catalogue import PEERS, RUNS, Peer
from bench.peers.environment import PYTHON, ROOT, Unavailable, install
from bench.peers.servers import forget_all, server

_PATIENCE_S = 400.0


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row for each peer, also for one that cannot be had here."""
    places = [folder / str(number) for number in range(len(PEERS))]
    for place in places:
        os.mkdir(place)
    pairs = zip(PEERS, places, strict=True)
    return [await _compared(peer, effort, place) for peer, place in pairs]


async def _compared(peer: Peer, effort: Effort, folder: Path) -> Row:
    name = f"tool runs, beside {peer.name}"
    runs = effort.count(peer.runs)
    target = Target("at least", peer.at_least) if peer.at_least is not None else None
    notes = [f"{peer.durability}; kept of a run: {peer.keeps}"]
    if runs != effort.count(RUNS):
        notes.append(f"its rate is that of {runs:,} runs, ours that of {effort.count(RUNS):,}")
    rounds = count()

    async def ours() -> float:
        home = folder / f"home-{next(rounds)}"
        return await _rate(sys.executable, "bench.peers.ours", [str(home)], effort.count(RUNS))

    try:
        install(peer)
        with server(peer.server) if peer.server else contextlib.nullcontext() as address:

            async def theirs() -> float:
                number = next(rounds)
                if address is not None and address.startswith("unix:"):
                    forget_all(address)
                settings = {
                    "PEER_PLACE": address or str(folder / f"{number}.db"),
                    "PEER_DONE": str(folder / f"{number}.done"),
                    **peer.settings,
                }
                try:
                    return await _rate(
                        str(PYTHON), "bench.peers.programs", [peer.program], runs, settings
                    )
                except RuntimeError as problem:
                    raise Unavailable(str(problem)) from problem

            pairs = await in_turn(ours, theirs, effort.rounds, warm_up=False)
    except Unavailable as problem:
        notes.insert(0, f"NOT RUN: {problem}")
        return Row(name, None, "/s", target=target, notes=notes)
    return pairs.row(name, "/s", target=target, notes=notes)


async def _rate(
    python: str,
    module: str,
    arguments: list[str],
    runs: int,
    settings: Mapping[str, str] | None = None,
) -> float:
    """One round, as a process: how many runs a second."""
    process = await asyncio.create_subprocess_exec(
        python,
        *("-m", module, *arguments, str(runs)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(settings or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that its workers can be ended with it
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            out, err = await process.communicate()
    except TimeoutError:
        raise RuntimeError(f"a round took more than {_PATIENCE_S:g} s") from None
    finally:
        if process.returncode != 0:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it may have left workers
            await process.wait()
    if process.returncode:
        last = err.decode(errors="replace").strip().splitlines() or ["without a word"]
        raise RuntimeError(f"{' '.join([module, *arguments])} failed: {last[-1]}")
    return runs / json.loads(out.splitlines()[-1])["seconds"]
