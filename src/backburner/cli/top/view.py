"""The view itself: puts the parts on the screen, and does what keys say."""

import asyncio
import os
from collections.abc import Coroutine
from dataclasses import replace
from typing import ClassVar, TypeVar

from rich.console import RenderableType
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.filter import NoColor
from textual.widget import Widget

from backburner.app import Backburner, Session
from backburner.app import Task as Handle
from backburner.cli import phrases
from backburner.cli.top import acting, keys
from backburner.cli.top.about import About, Head
from backburner.cli.top.bar import Bar, Typing
from backburner.cli.top.listpane import Heading, TaskList
from backburner.cli.top.outputpane import OutputPane
from backburner.cli.top.roster import Choice, is_active
from backburner.cli.top.upkeep import Upkeep
from backburner.model.errors import BackburnerError
from backburner.model.input import Input
from backburner.model.task import Task
from backburner.work.shell import input_of

_TALL = 16
"""Lines below which the output is not shown beside the list."""

Part = TypeVar("Part", bound=Widget)


class Top(App[int]):
    """The full-screen view."""

    CSS_PATH = "top.tcss"
    BINDINGS: ClassVar[list[BindingType]] = keys.BINDINGS
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    TITLE = "backburner top"

    def __init__(self, backburner: Backburner, session: Session, choice: Choice) -> None:
        super().__init__(ansi_color=True)  # the terminal's own colours, as the other commands
        if not os.environ.get("NO_COLOR"):  # an empty one does not count, but does for textual
            self._filters = [each for each in self._filters if not isinstance(each, NoColor)]
            self.no_color = False
        self.animation_level = "none"
        self._backburner = backburner
        self._session = session
        self._first_choice = choice
        self._upkeep: Upkeep | None = None
        self._doing: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None
        """What ended the view, if it was not the person."""

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Head()
        yield Heading()
        yield TaskList()
        yield About()
        yield OutputPane()
        yield Bar()

    def on_mount(self) -> None:
        """Begin."""
        screen = self.screen
        self._upkeep = Upkeep(self._backburner, self._session, self._first_choice, screen)
        self._part(TaskList).focus()
        self._following = self._begin(self._follow(self._upkeep))

    def exit(
        self,
        result: int | None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """See App. From now on nothing is shown: the parts of the screen go before it does."""
        if self._following is not None:
            self._following.cancel()
        super().exit(result, return_code, message)

    async def on_unmount(self) -> None:
        """Let go of everything."""
        for each in self._doing:
            each.cancel()
        if self._doing:
            await asyncio.wait(self._doing)
        if self._upkeep is not None:
            await self._upkeep.close()

    @property
    def upkeep(self) -> Upkeep:
        """What keeps the screen up to date."""
        assert self._upkeep is not None, "the view is not mounted"
        return self._upkeep

    async def _follow(self, upkeep: Upkeep) -> None:
        try:
            await upkeep.go_on()
        except Exception as error:  # noqa: BLE001 - told when the terminal is the person's again
            self.failure = error
            self.exit()

    # The screen

    def _part(self, kind: type[Part]) -> Part:
        return self.screen_stack[0].query_one(kind)  # the page of keys may lie over it

    def _fill(self, full: bool) -> None:
        """Give the output the whole screen, or take it back."""
        self.screen_stack[0].set_class(full, "full")
        self.on_bar_closed()
        self.upkeep.wake()

    def on_resize(self, event: events.Resize) -> None:
        """The columns have to fit; where there is no room for two panes, there is the list."""
        self.screen_stack[0].set_class(event.size.height < _TALL, "short")
        if self._upkeep is not None:  # the first size comes before anything is mounted
            self._upkeep.forget_sizes()

    def on_task_list_chosen(self) -> None:
        """Its output is shown from now on."""
        self.upkeep.wake()

    def on_task_list_seen(self) -> None:
        """The titles stand above their columns; what came into view is read."""
        self._part(Heading).show(self._part(TaskList).columns)
        self.upkeep.wake()

    def on_bar_closed(self) -> None:
        """The keys go where they went before."""
        (self._part(OutputPane) if self.upkeep.full else self._part(TaskList)).focus()

    # Keys

    def action_leave(self, status: int) -> None:
        """Leave; no job is touched."""
        self.exit(status)

    def action_keys(self) -> None:
        """List the keys."""
        self.push_screen(keys.Keys())

    def action_open(self) -> None:
        """The output in full; or the answer, where a question is asked."""
        chosen = self.upkeep.chosen
        if chosen is not None and chosen.id in self.upkeep.questions:
            self.action_answer()
        elif chosen is not None:
            self._fill(not self.upkeep.full)

    def action_out(self) -> None:
        """Out of what was opened last."""
        if self.upkeep.full:
            self._fill(False)
        elif self._part(OutputPane).has_focus:
            self._part(TaskList).focus()
        elif self.upkeep.choice.search:
            self._end_search(self.upkeep.chosen)
        self._part(Bar).quiet()

    def action_other_pane(self) -> None:
        """Keys scroll the output, or go back to the list."""
        tasks, pane = self._part(TaskList), self._part(OutputPane)
        if not self.upkeep.full and pane.display:
            (pane if tasks.has_focus else tasks).focus()

    def action_scroll_output(self, rows: int) -> None:
        """Without leaving the list."""
        self._part(OutputPane).action_scroll_by(rows)

    def on_output_pane_moved(self) -> None:
        """What is said about it changes."""
        self.upkeep.wake()

    def action_active(self) -> None:
        """Active tasks only, or all."""
        choice = self.upkeep.choice
        self.upkeep.choice = replace(choice, active_only=not choice.active_only)

    def action_sessions(self) -> None:
        """This session, or all."""
        session = self._session.name if self.upkeep.choice.session is None else None
        self.upkeep.choice = replace(self.upkeep.choice, session=session)

    def action_search(self) -> None:
        """Type what to look for; the list follows."""
        chosen = self.upkeep.chosen
        self._fill(False)
        self._part(Bar).type(
            Typing(
                "search in id, title and command (Esc ends it)",
                done=self._search,
                changed=self._search,
                given_up=lambda: self._end_search(chosen),
                text=self.upkeep.choice.search,
            )
        )

    def _search(self, text: str) -> None:
        if text.strip() != self.upkeep.choice.search:
            self.upkeep.choice = replace(self.upkeep.choice, search=text.strip())

    def _end_search(self, chosen: Task | None) -> None:
        self.upkeep.wanted = chosen.id if chosen else None
        self.upkeep.choice = replace(self.upkeep.choice, search="")

    def action_stop(self, force: bool) -> None:
        """Ask, then stop it."""
        task, bar = self.upkeep.chosen, self._part(Bar)
        if task is None:
            bar.notice("there is no task")
        elif not is_active(task):
            bar.notice(f"{task.title} is not running: it {phrases.ending(task)}")
        else:
            stop = acting.stop
            handle = Handle(self._backburner, task)
            how = "kill" if force else "stop"
            bar.ask(f"{how} {task.title}?", lambda: self._do(stop(handle, force=force)))

    def action_answer(self) -> None:
        """Type the answer to its question, or a line for its standard input."""
        task, bar = self.upkeep.chosen, self._part(Bar)
        if task is None:
            bar.notice("there is no task")
            return
        question = self.upkeep.questions.get(task.id)
        if question is None and (task.state.terminal or input_of(task.spec) is Input.NONE):
            bar.notice(f"{task.title} asks nothing")
            return
        handle = Handle(self._backburner, task)
        label = f"? {question.text}" if question else f"a line for {task.title}"
        asked = question.id if question else None
        bar.type(Typing(label, lambda text: self._do(acting.send(handle, text, question=asked))))

    def action_rerun(self) -> None:
        """Ask, then run the same command as a new task."""
        task = self.upkeep.chosen
        if task is None:
            self._part(Bar).notice("there is no task")
        else:
            self._part(Bar).ask(f"run {task.title} again?", lambda: self._do(self._rerun(task)))

    async def _rerun(self, task: Task) -> str:
        self.upkeep.wanted = (await Handle(self._backburner, task).rerun()).id
        self.upkeep.look_at_record()
        return f"{task.title} runs again"

    def _do(self, work: Coroutine[None, None, str]) -> None:
        """Do it beside the view, and say how it went."""

        async def do() -> None:
            try:
                said, wrong = await work, False
            except BackburnerError as error:
                said, wrong = error.message + (f" ({error.remedy})" if error.remedy else ""), True
            except OSError as error:
                said, wrong = error.strerror or str(error), True
            self._part(Bar).notice(said, wrong=wrong)

        self._begin(do())

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        doing = asyncio.create_task(work)
        self._doing.add(doing)
        doing.add_done_callback(self._doing.discard)
        return doing

    def _handle_exception(self, error: Exception) -> None:
        # textual would print a traceback; ours goes where details of errors go.
        self.failure = error
        super()._handle_exception(error)
        self._exit_renderables.clear()
