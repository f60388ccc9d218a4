"""A recording of the view: one story in frames, at several sizes, held to golden files."""

import sys

import pytest

from backburner import Backburner
from backburner.app import Session, Task
from tests.cli.golden import Golden
from tests.cli.top.driving import View, shown, steady_rules
from tests.waiting import wait_until_async

BACKBURNER = f"{sys.executable} -m backburner.cli"


class Recording:
    """Frames, one below the other."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._frames: list[str] = []

    async def take(self, title: str, *texts: str) -> None:
        """A frame, once all of this is on the screen."""
        await self._view.shows(*texts)
        for _ in range(2):  # what is drawn may bring more into view
            await self._view.settle()
            await wait_until_async(lambda: self._view.app.upkeep.settled)
        await self._view.settle()
        screen = steady_rules(self._view.text())
        width = self._view.app.size.width
        self._frames.append(f"{f'== {title} ':=<{width}}\n{screen}\n")

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._frames)


async def begin(session: Session) -> None:
    """Tasks in every state, each with a name of its own."""

    async def run(name: str, command: str, title: str | None = None) -> None:
        await session.run(command, id=name, title=title)

    await run("lint-1", "echo 'all checks passed'", "lint")
    await run("tests-1", "echo '3 failed, 120 passed'; exit 1", "tests")
    await run("stop-me", "sleep 60", "an experiment")
    await session.run("true", id="never-1", title="never begins", cwd="/nowhere")
    await run(
        "copy-1",
        f"{BACKBURNER} progress 5 8 --unit files; seq -f 'copied file %g' 1 5; sleep 60",
        "copies files",
    )
    await run("deploy-1", f'{BACKBURNER} ask "Deploy version 2 to production?"', "deploy")
    await run("server-1", "echo listening on port 8000; sleep 60", "a server, 日本語 in its name")
    for name in ("lint-1", "tests-1"):
        await (await session.task(name)).wait()
    await (await session.task("stop-me")).stop(force=True)
    asked = await session.task("deploy-1")
    copies = await session.task("copy-1")
    await wait_until_async(lambda: _is(asked, "input_required"))
    await wait_until_async(lambda: _has_progress(copies))
    await wait_until_async(lambda: _has_said(copies, "file 5"))
    server = await session.task("server-1")
    await wait_until_async(lambda: _has_said(server, "8000"))


async def _is(task: Task, state: str) -> bool:
    return (await task.refresh()).state == state


async def _has_said(task: Task, text: str) -> bool:
    return text in (await task.output()).text


async def _has_progress(task: Task) -> bool:
    return (await task.refresh()).record.progress is not None


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "lines"), [(120, 30), (80, 24), (40, 10)])
async def test_the_story_in_frames(
    opened: Backburner, golden: Golden, columns: int, lines: int
) -> None:
    session = opened.session("test")
    await begin(session)
    async with shown(opened, columns=columns, lines=lines) as view:
        recording = Recording(view)
        await recording.take("what there is", "server-1", "never-1", "2 running", "1 asking")
        await view.press("down", "down")
        await wait_until_async(lambda: view.pane.lines[-1:] == ["copied file 5"])
        await recording.take("a task that copies files is chosen")
        await view.press("enter")
        await recording.take("its output in full", "Esc back", "copied file 5")
        await view.press("escape", "up", "A")
        await recording.take("an answer is typed", "? Deploy version 2")
        await view.press("y", "e", "s", "enter")
        await wait_until_async(lambda: view.chosen.state.terminal)
        await recording.take("it was given", "deploy has its answer", "2 running")
        await view.press("slash", "t", "e", "s", "t")
        await wait_until_async(lambda: view.list.virtual_size.height == 1)
        await recording.take("a search", "tests-1")
        await view.press("enter", "escape")
        await wait_until_async(lambda: view.list.virtual_size.height == 7)
        await view.press("home")
        await wait_until_async(lambda: view.chosen.id == "server-1")
        await view.press("x")
        await recording.take("a stop is asked about", "stop a server")
        await view.press("n", "question_mark")
        await recording.take("the keys", "╭─ keys")
    golden.check(f"top-{columns}x{lines}", recording.text)
