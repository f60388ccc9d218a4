"""Driving the real view without a terminal: keys in, text of the screen out."""

import contextlib
import io
import re
from collections.abc import AsyncGenerator
from typing import Any

from rich.console import Console
from textual.pilot import Pilot

from backburner import Backburner
from backburner.cli.top.listpane import TaskList
from backburner.cli.top.outputpane import OutputPane
from backburner.cli.top.roster import Choice
from backburner.cli.top.view import Top
from backburner.model.task import Task
from tests.waiting import wait_until_async

_RULE = re.compile("─{2,}")


class View:
    """The view while it runs."""

    def __init__(self, app: Top, pilot: Pilot[int]) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        await self._pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Press the keys of a text."""
        names = {" ": "space", "-": "minus", "_": "underscore", ".": "full_stop", "/": "slash"}
        await self._pilot.press(*(names.get(character, character) for character in text))

    async def resize(self, columns: int, lines: int) -> None:
        """As when a person drags the corner of the window."""
        await self._pilot.resize_terminal(columns, lines)

    async def settle(self) -> None:
        """Until everything that was asked for is drawn."""
        await self._pilot.pause()

    @property
    def chosen(self) -> Task:
        """The task that keys act on."""
        chosen = self.app.upkeep.chosen
        assert chosen is not None
        return chosen

    @property
    def list(self) -> TaskList:
        """The list."""
        return self.app.screen_stack[0].query_one(TaskList)

    @property
    def pane(self) -> OutputPane:
        """The output."""
        return self.app.screen_stack[0].query_one(OutputPane)

    def text(self, *, styles: bool = False) -> str:
        """What is on the screen, line by line."""
        width, height = self.app.size
        console = Console(
            width=width, height=height, file=io.StringIO(), force_terminal=True,
            color_system="truecolor", record=True, legacy_windows=False,
        )  # fmt: skip
        # What `export_screenshot` does; textual itself gives out a picture only.
        app: Any = self.app
        below = app._background_screens
        console.print(app.screen._compositor.render_update(full=True, screen_stack=below))
        text = console.export_text(styles=styles)
        return "\n".join(line.rstrip() for line in text.splitlines())

    async def shows(self, *texts: str) -> str:
        """Wait until all of this is on the screen."""
        await wait_until_async(
            lambda: all(text in self.text() for text in texts),
            message=lambda: f"{texts} not on the screen:\n{self.text()}",
        )
        return self.text()

    async def shows_no(self, text: str) -> str:
        """Wait until this is not on the screen."""
        await wait_until_async(
            lambda: text not in self.text(),
            message=lambda: f"{text!r} is on the screen:\n{self.text()}",
        )
        return self.text()


@contextlib.asynccontextmanager
async def shown(
    backburner: Backburner,
    *,
    columns: int = 100,
    lines: int = 30,
    session: str = "test",
    search: str = "",
) -> AsyncGenerator[View]:
    """The view on a screen of this size."""
    choice = Choice(session=session, search=search)
    app = Top(backburner, backburner.session(session), choice)
    async with app.run_test(size=(columns, lines)) as pilot:
        view = View(app, pilot)
        await wait_until_async(lambda: app.upkeep.looks > 0)
        yield view


def steady_rules(frame: str) -> str:
    """Rules as long as the durations in them leave room for differ from run to run."""
    return _RULE.sub("──", frame)
