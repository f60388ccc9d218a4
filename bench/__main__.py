"""`python -m bench [NAME…] [--quick] [--json FILE] [--check]`: measure, and print one table.

Exits with 1 when a benchmark crashed, and with --check also when a target was missed.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw

from bench import (
    adoption,
    command,
    context,
    ending,
    idle,
    invoke,
    listing,
    memory,
    output,
    parked,
    reporting,
    shell_start,
    spawn,
    start,
    stop,
    streams,
    throughput,
)
from bench.measure import Effort, Row
from bench.peers import tool_runs
from bench.shared import growth, latency, logs, reach
from bench.shared import throughput as shared_throughput
from bench.simulation import check as simulation
from bench.table import table
from bench.workspace import file_system, workspace

Benchmark = Callable[[Effort, Path], Awaitable[list[Row]]]

BENCHMARKS: dict[str, Benchmark] = {
    "peers": tool_runs.run,  # first: see README.md on files that were removed
    "start": start.run,
    "throughput": throughput.run,
    "shell": shell_start.run,
    "memory": memory.run,
    "output": output.run,
    "ending": ending.run,
    "stop": stop.run,
    "listing": listing.run,
    "command": command.run,
    "reporting": reporting.run,
    "idle": idle.run,
    "adoption": adoption.run,
    "context": context.run,
    "invoke": invoke.run,
    "spawn": spawn.run,
    "parked": parked.run,
    "streams": streams.run,
    "machines": shared_throughput.run,
    "machines-start": latency.run,
    "machines-growth": growth.run,
    "machines-logs": logs.run,
    "machines-reach": reach.run,
    "simulation": simulation.run,
}

KEEPER_IDLE_S = 600
"""No keeper leaves while it is measured."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{', '.join(BENCHMARKS)}; all of them when none is given",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and two rounds")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to this file")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    arguments = parser.parse_args()
    names: list[str] = arguments.names or list(BENCHMARKS)
    if unknown := sorted(set(names) - set(BENCHMARKS)):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")

    _plain_environment()
    effort = Effort(quick=arguments.quick)
    machine = describe_machine()
    print(machine + (" (quick)" if effort.quick else ""), flush=True)
    rows: list[Row] = []
    crashed: list[str] = []
    for name in names:
        began = time.perf_counter()
        try:
            with workspace() as folder:
                rows += asyncio.run(_measure(BENCHMARKS[name], effort, folder))
        except Exception:  # noqa: BLE001 - the others are measured all the same
            crashed.append(name)
            traceback.print_exc()
        print(f"  {name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"\n{table(rows)}")
    if arguments.json is not None:
        document = {
            "machine": machine,
            "quick": effort.quick,
            "rows": [row.document() for row in rows],
            "crashed": crashed,
        }
        arguments.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    if crashed:
        print(f"\ncrashed: {', '.join(crashed)}", file=sys.stderr)
        return 1
    return int(arguments.check and any(row.met is False for row in rows))


async def _measure(benchmark: Benchmark, effort: Effort, folder: Path) -> list[Row]:
    return await benchmark(effort, folder)


def _plain_environment() -> None:
    """The defaults, whatever the caller's environment says."""
    for name in [name for name in os.environ if name.startswith("BACKBURNER_")]:
        del os.environ[name]
    os.environ["BACKBURNER_KEEPER_IDLE_S"] = str(KEEPER_IDLE_S)


def describe_machine() -> str:
    """What the absolute numbers belong to."""
    with workspace() as folder:
        kind = file_system(folder)
    load = os.getloadavg()[0]
    return (
        f"Linux {platform.release()}, {os.cpu_count()} cores, load {load:.1f}, homes on {kind}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    )


if __name__ == "__main__":
    sys.exit(main())
