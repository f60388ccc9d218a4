"""What a model reads of a long build: from its start to its outcome, in characters.

The build prints 50 MB in 20 phases, each of which stands for half a minute, and fails at the end.
Ours: the model starts it through the tool set, goes on with other work (it calls one other tool in
each phase), is told of the end with one of those answers, and reads the new output once. Naive: it
asks for the last 4,000 characters in every phase, as agents do whose jobs do not report back.
"""

import asyncio
import json
import textwrap
from pathlib import Path

from backburner import Backburner, Session, Task
from bench.measure import Effort, Row, Target

PHASES = 20
LINES = 40_000
"""Of each phase: 2.5 MB."""

BUILD = textwrap.dedent(
    """
    for phase in $(seq 20); do
        read -r go
        seq -f "[phase $phase] cc -O2 -Wall -c object-%06.0f.c -o build.o" $LINES | cut -c -63
        echo "phase $phase done"
    done
    echo "ld: undefined reference to 'main'"
    exit 2
    """
)


async def run(effort: Effort, folder: Path) -> list[Row]:
    """The two ways beside each other, and the schemas apart."""
    async with Backburner.open(folder / "home") as bb:
        session = bb.session("build")
        lines = {"LINES": str(effort.count(LINES))}
        told, repeated = await _told(session, await _build(session, lines))
        polled = await _polled(await _build(session, lines))
        schemas = session.toolset()
        sizes = {form: len(json.dumps(schemas.schemas(form))) for form in ("openai", "mcp")}
    if repeated:
        raise RuntimeError(f"output was read twice: {repeated[:3]}")
    return [
        Row(
            "characters a model reads of a build",
            told,
            "chars",
            polled,
            told / polled,
            target=Target("at most", 2000, "chars"),
            notes=["raw: the same build, polled in each of its 20 phases"],
        ),
        Row(
            "schemas of the tool set",
            max(sizes.values()),
            "chars",
            target=Target("at most", 6000, "chars"),
            notes=[f"{form}: {size:,}" for form, size in sizes.items()],
        ),
    ]


async def _build(session: Session, environment: dict[str, str]) -> Task:
    return await session.run(BUILD, stdin=True, title="build", env=environment)


async def _told(session: Session, build: Task) -> tuple[int, list[str]]:
    """The model goes on, and is told."""
    tools = session.toolset()
    read = [f"Started {build.id}. You will be told when it ends: go on, do not poll."]
    other = await session.run("true", title="other work")
    await other.wait(60)
    await tools.call("background_list")  # what else it does is not this build's cost
    for phase in range(1, PHASES + 1):
        await build.send("go")
        await _until(build, f"phase {phase} done")
    await build.wait(120)
    answer = await tools.call("background_output", {"id": build.id, "max_chars": 1000})
    read.append(answer.text)
    again = await tools.call("background_output", {"id": build.id})
    lines = [line for line in answer.data["output"].splitlines() if line.strip()]
    return sum(map(len, read)), [line for line in lines if line in again.data["output"]]


async def _polled(build: Task) -> int:
    """The model looks in every phase."""
    read = 0
    for phase in range(1, PHASES + 1):
        await build.send("go")
        await _until(build, f"phase {phase} done")
        read += len((await build.output(max_chars=4000)).text)
    await build.wait(120)
    return read + len((await build.output(max_chars=4000)).text)


async def _until(build: Task, line: str) -> None:
    """Wait for the end of a phase, as the clock would."""
    while line not in (await build.output(max_chars=300, last_lines=3)).text:
        if build.state.terminal:
            return  # the last phase, and what came after it
        await asyncio.sleep(0.02)
