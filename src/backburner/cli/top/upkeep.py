"""Bringing the view up to date: when the record changes, when a log on the screen grows, when a

second of something that runs has passed, when the person chose something else. Never more than
ten times a second, and not at all when nothing of it happens.
"""

import asyncio
import contextlib
from typing import TypeVar

from textual.screen import Screen
from textual.widget import Widget

from backburner.app import Backburner, Session
from backburner.app import Task as Handle
from backburner.cli.phrases import STATE_COLOURS
from backburner.cli.textwidth import clean
from backburner.cli.top import keys
from backburner.cli.top.about import About, Head, facts_about
from backburner.cli.top.bar import Bar
from backburner.cli.top.listpane import TaskList
from backburner.cli.top.logbell import LogBell
from backburner.cli.top.outputpane import OutputPane
from backburner.cli.top.outputs import Output
from backburner.cli.top.roster import NEWEST, Choice, Roster, is_active
from backburner.cli.top.rows import NARROW, Piece, said_instead
from backburner.cli.top.tails import Tails
from backburner.model import clock
from backburner.model.errors import NotFound, StoreAway
from backburner.model.questions import Question
from backburner.model.states import State
from backburner.model.task import Task
from backburner.runtime.outages import endured

FLOOR_S = 0.1
"""Between two looks, however much happens."""
_TICK_S = 1.0
_SOON_S = 0.25
"""Where the kernel does not tell, or reads were put off."""
_FEWEST_ROWS = 5
_COUNTED = (
    (State.RUNNING, "running"),
    (State.INPUT_REQUIRED, "asking"),
    (State.QUEUED, "queued"),
)

Part = TypeVar("Part", bound=Widget)


class Upkeep:
    """Reads what is new, and hands it to the parts of the screen."""

    def __init__(
        self, backburner: Backburner, session: Session, choice: Choice, screen: Screen[object]
    ) -> None:
        self._backburner = backburner
        self._screen = screen
        self._roster = Roster(backburner, session, choice)
        self._tails = Tails(backburner)
        self._output = Output(backburner)
        self._rung = asyncio.Event()
        self._bell = LogBell(backburner.home, self.wake)
        store = backburner.store
        self._unsubscribe = (
            store.on_change(self.look_at_record),
            store.on_outage(self._tell_outage),
        )
        self._searching: asyncio.Task[None] | None = None
        self._record_changed = True
        self._new_choice = False
        self._shown: tuple[str, int] | None = None
        self._list_height = 0
        self.wanted: str | None = None
        """To be chosen as soon as it is in the list."""
        self.questions: dict[str, Question] = {}
        """The oldest open question of each task in the list that asks."""
        self.looks = 0
        """How often the view was brought up to date."""
        if choice.search:
            self._search_further()

    async def close(self) -> None:
        """Let go of everything."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._searching is not None:
            self._searching.cancel()
            await asyncio.wait([self._searching])
        self._bell.close()

    @property
    def choice(self) -> Choice:
        """What the person wants to see."""
        return self._roster.choice

    @choice.setter
    def choice(self, choice: Choice) -> None:
        self._roster.choice = choice
        self._new_choice = True
        self.look_at_record()
        if choice.search:
            self._search_further()

    @property
    def chosen(self) -> Task | None:
        """The task that keys act on."""
        return self._part(TaskList).chosen

    @property
    def full(self) -> bool:
        """Whether the output has the whole screen."""
        return self._screen.has_class("full")

    @property
    def settled(self) -> bool:
        """Whether everything that is known of is on the screen."""
        return not (self._rung.is_set() or self._tails.due)

    def wake(self) -> None:
        """There may be something new to show."""
        self._rung.set()

    def look_at_record(self) -> None:
        """There may be something new in the record."""
        self._record_changed = True
        self._rung.set()

    def _tell_outage(self, reason: str | None) -> None:
        back = reason is None
        self._part(Bar).notice("the record is back" if back else f"{reason}", wrong=not back)

    def forget_sizes(self) -> None:
        """The terminal has another size."""
        self._list_height = 0
        self.look_at_record()

    async def go_on(self) -> None:
        """Keep the view up to date until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._rung.clear()
            try:
                await self._look()
            except StoreAway as error:  # what is on the screen stays there
                self._tell_outage(error.message)
                self.look_at_record()
            await asyncio.sleep(max(0.0, began + FLOOR_S - loop.time()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience()):
                    await self._rung.wait()

    def _patience(self) -> float | None:
        """How long to wait at the most for a reason to look again."""
        if self._bell.blind or self._tails.due:
            return _SOON_S
        watched = [*self._in_view(), *([self.chosen] if self.chosen else [])]
        return _TICK_S if any(is_active(task) for task in watched) else None

    async def _look(self) -> None:
        if self._part(TaskList).columns is None:
            return  # not on the screen yet; its size will wake us
        self.looks += 1
        changed, self._record_changed = self._record_changed, False
        if changed:
            await self._show_tasks()
        chosen, seen = self.chosen, self._in_view()
        # Listening comes before reading: what is written in between rings again.
        self._bell.listen_to([*seen, *([chosen] if chosen else [])])
        grown = self._bell.grown()
        shown = (chosen.id, chosen.attempt) if chosen else None
        if changed or shown != self._shown or (chosen and chosen.id in grown):
            await self._show_output(chosen)
            self._shown = shown
        await self._tails.look(seen, grown)
        self._show_facts(chosen, seen)

    async def _show_tasks(self) -> None:
        tasks = self._part(TaskList)
        # What changed by itself does not take the chosen task away; what the person wants may.
        sticky = self.chosen.id if self.chosen and not self._new_choice else None
        self._new_choice = False
        wanted = self.wanted  # another may be wanted while we read
        await self._roster.look(keep=wanted or sticky)
        self._make_room()
        tasks.show(self._roster.tasks, sessions=self.choice.session is None)
        if wanted is not None:
            tasks.choose_task(wanted)
            self.wanted = None if self.wanted == wanted else self.wanted
        self._part(Head).show(self._headline())
        self.questions = {}
        for task in self._roster.tasks:
            if task.state is State.INPUT_REQUIRED:
                with contextlib.suppress(NotFound):
                    asked = await Handle(self._backburner, task).questions()
                    own = [each for each in asked if each.open and not each.approval]
                    if waiting := next(iter(own), None):
                        self.questions[task.id] = waiting

    def _make_room(self) -> None:
        """The list is as high as it needs to be, within limits. It does not shrink by itself:

        that would move the output for nothing.
        """
        most = max(_FEWEST_ROWS, (self._screen.size.height - 4) * 2 // 5)
        height = max(_FEWEST_ROWS, self._list_height, len(self._roster.tasks))
        self._list_height = min(height, most)
        styles = self._part(TaskList).styles
        if self._screen.has_class("short"):
            styles.clear_rule("height")
        else:
            styles.height = self._list_height

    async def _show_output(self, task: Task | None) -> None:
        pane = self._part(OutputPane)
        try:
            pane.add(await self._output.read(task))
        except NotFound:  # forgotten a moment ago
            pane.add(await self._output.read(None))

    def _show_facts(self, chosen: Task | None, seen: list[Task]) -> None:
        """What changes with the time, too."""
        tasks, pane, now = self._part(TaskList), self._part(OutputPane), clock.now()
        tasks.tell({task.id: self._asked_by(task) or self._tails.of(task) for task in seen})
        tasks.tick()
        facts, empty = None, ""
        if chosen is not None:
            note = "" if pane.following else "more below: G"
            facts = facts_about(chosen, now, question=self._asked_by(chosen), note=note)
            nothing = "no output" if chosen.state.terminal else "no output yet"
            empty = said_instead(chosen, now) or nothing
        pane.say_when_empty(empty)
        self._part(About).show(facts)
        self._part(Bar).usual(
            keys.hints(
                self._screen.size.width,
                full=self.full,
                asks=bool(chosen and chosen.id in self.questions),
                filtered=bool(self.choice.search),
            )
        )

    def _asked_by(self, task: Task) -> str:
        question = self.questions.get(task.id)
        return question.text if question else ""

    def _headline(self) -> list[Piece]:
        choice, counts = self._roster.choice, self._roster.counts
        where = "all sessions" if choice.session is None else f"session {choice.session}"
        said: list[Piece] = [(f" {clean(where)}", None)]
        if self._screen.size.width >= NARROW:
            said = [(" backburner", "bold"), (" ", None), *said]
        for state, word in _COUNTED:
            if counts[state]:
                more = "+" if counts[state] >= NEWEST else ""
                said += [("  ", None), (f"{counts[state]}{more} {word}", STATE_COLOURS[state])]
        if choice.active_only:
            said.append(("  active only", "dim"))
        if choice.search:
            said += [("  /", "dim"), (clean(choice.search), "bold")]
        if not self._roster.tasks:
            said.append(("  nothing to show", "dim"))
        elif self._roster.more and not choice.search and not choice.active_only:
            said.append((f"  the newest {NEWEST}", "dim"))
        return said

    def _in_view(self) -> list[Task]:
        return [] if self.full else self._part(TaskList).seen

    def _part(self, kind: type[Part]) -> Part:
        return self._screen.query_one(kind)

    def _search_further(self) -> None:
        if self._searching is not None:
            self._searching.cancel()

        async def search() -> None:
            await endured(self._roster.search_further)
            self.look_at_record()

        self._searching = asyncio.create_task(search())
