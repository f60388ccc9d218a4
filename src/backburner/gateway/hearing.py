"""Everything that is heard: noted at once, then dealt with, each place in its own order.

To hear is quick, whatever a command does: the platform goes on telling meanwhile. What was noted
and not dealt with when a gateway was killed is taken up by the next one. A stranger is not noted.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from backburner.gateway.asking import await_answer, choose
from backburner.gateway.commands import UNKNOWN, output, stop, stranger
from backburner.gateway.desk import Desk, Request
from backburner.gateway.letters import written
from backburner.gateway.people import People
from backburner.gateway.plain import plain
from backburner.gateway.platform import Heard, Message, Person, Place, Press
from backburner.gateway.registry import Command, parse
from backburner.gateway.wording import ANSWER, CHOOSE, OUTPUT, STOP
from backburner.model.errors import BackburnerError, StoreClosed
from backburner.model.limits import SPEC_MAX_BYTES
from backburner.model.redaction import redact_text

_log = logging.getLogger("backburner.gateway")

QUEUED_MAX = 50
"""Of one place, that wait; more are left out, with a word."""

MESSAGE_MAX_BYTES = SPEC_MAX_BYTES // 2
"""Of a message: the record of a task holds it together with what was said before."""

TALK_MAX = 20
"""Plain messages of one place that wait for the agent. Commands and buttons always pass."""

_STRANGERS_MAX = 200
_FOR_STRANGERS = frozenset({"start", "whoami"})
_TOO_MUCH = "That is too much at once: this was left out."
_TOO_LONG = (
    f"That is longer than {MESSAGE_MAX_BYTES // 1024} KiB, the limit of a message, and was left"
    " out: send it as a file."
)
_INTERRUPTED = (
    "I was restarted in the middle of this, and it may have been done already: /tasks shows how"
    " things stand."
)


class Hearing:
    """The ears of a gateway."""

    def __init__(self, desk: Desk, people: People) -> None:
        self._desk = desk
        self._people = people
        self._waiting: dict[Place, deque[Heard]] = {}
        self._begun: set[Heard] = set()
        """What a gateway that was killed had begun with."""
        self._apart: Counter[Place] = Counter()
        """What is being dealt with beside the order, by place."""
        self._running: set[asyncio.Task[None]] = set()
        self._told_strangers: dict[str, None] = {}

    async def hear(self, heard: Heard) -> None:
        """Note it, and see to it that it is dealt with. Returns when it is on disk. OSError."""
        if self._people.scope_of(heard.place, heard.person) is None:
            self._answer_stranger(heard)
        elif _is_too_long(heard):  # for the journal, too
            if not self._desk.journal.knows(heard):
                self._spawn(self._refuse(heard, _TOO_LONG))
        elif self._desk.journal.hear(heard):
            self._enqueue(heard)

    def take_up(self) -> None:
        """What a gateway before this one has not dealt with."""
        for unfinished in self._desk.journal.unfinished():
            if unfinished.begun:
                self._begun.add(unfinished.heard)
            self._enqueue(unfinished.heard)

    async def close(self) -> None:
        """What is not dealt with stays in the journal."""
        running = list(self._running)
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)

    # In order

    def _enqueue(self, heard: Heard) -> None:
        waiting = self._waiting.get(heard.place)
        if len(waiting or ()) >= QUEUED_MAX:
            self._spawn(self._refuse(heard))
        elif waiting is None:
            self._waiting[heard.place] = deque([heard])
            self._spawn(self._work_off(heard.place))
        else:
            waiting.append(heard)

    async def _work_off(self, place: Place) -> None:
        waiting = self._waiting[place]
        try:
            while waiting:
                await self._deal_with(waiting[0])
                waiting.popleft()
        finally:
            del self._waiting[place]

    async def _deal_with(self, heard: Heard) -> None:
        scope = self._people.scope_of(heard.place, heard.person)
        if scope is None:  # somebody was taken off the list meanwhile
            self._desk.journal.finish(heard)
            return
        request = Request(self._desk, heard, scope)
        action, slow = self._action(request)
        if action is plain and self._apart[heard.place] >= TALK_MAX:
            await self._refuse(heard)
        elif slow:
            self._apart[heard.place] += 1
            self._spawn(self._beside(request, action))
        else:
            await self._carry_out(request, action)

    async def _beside(self, request: Request, action: Callable[[Request], Awaitable[None]]) -> None:
        try:
            await self._carry_out(request, action)
        finally:
            self._apart[request.heard.place] -= 1
            self._apart += Counter()  # forgets those that have none

    def _action(self, request: Request) -> tuple[Callable[[Request], Awaitable[None]], bool]:
        """What is to be done, and whether others need not wait for it."""
        heard = request.heard
        if heard in self._begun:
            self._begun.discard(heard)
            return _say_interrupted, False
        if isinstance(heard, Press):
            return _pressed, True
        command = parse(heard.text)
        if command is None:
            return plain, True
        name, request.arguments = command
        found = self._desk.commands.find(name)
        if found is None:
            return _unknown, False
        if found.needs and not request.arguments:
            return _usage(found), False
        return found.action, found.slow

    async def _carry_out(
        self, request: Request, action: Callable[[Request], Awaitable[None]]
    ) -> None:
        try:
            await action(request)
        except StoreClosed:
            return  # the gateway leaves: taken up by the next one
        except BackburnerError as error:
            await request.reply(redact_text(str(error)))
        except Exception as error:  # noqa: BLE001 - one message must not end the others
            _log.exception("a request failed")
            await request.reply(f"Something went wrong here ({type(error).__name__}); see the log.")
        self._desk.journal.finish(request.heard)

    async def _refuse(self, heard: Heard, reason: str = _TOO_MUCH) -> None:
        scope = self._people.scope_of(heard.place, heard.person)
        if scope is not None:
            await Request(self._desk, heard, scope).reply(reason)
        self._desk.journal.finish(heard)

    # Strangers

    def _answer_stranger(self, heard: Heard) -> None:
        """Their own id, when they ask for it, once; it is what the list needs."""
        command = parse(heard.text) if isinstance(heard, Message) else None
        known = heard.person.id in self._told_strangers
        if command is None or command[0].lower() not in _FOR_STRANGERS or known:
            return
        if len(self._told_strangers) < _STRANGERS_MAX:
            self._told_strangers[heard.person.id] = None
            self._spawn(self._introduce(heard.person, heard.place, heard.key))

    async def _introduce(self, person: Person, place: Place, key: str) -> None:
        name = f"stranger:{place.chat}:{key}"
        text = stranger(person.id)
        await self._desk.lines.to(place).reply(written(name, place, text, self._desk.limits))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Future[None]") -> None:
        self._running.discard(task)  # type: ignore[arg-type]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("dealing with a message failed", exc_info=error)


def _is_too_long(heard: Heard) -> bool:
    if not isinstance(heard, Message) or len(heard.text) <= MESSAGE_MAX_BYTES // 4:
        return False
    return len(heard.text.encode(errors="replace")) > MESSAGE_MAX_BYTES


async def _say_interrupted(request: Request) -> None:
    await request.reply(_INTERRUPTED)


async def _unknown(request: Request) -> None:
    await request.reply(UNKNOWN)


def _usage(command: Command) -> Callable[[Request], Awaitable[None]]:
    async def say(request: Request) -> None:
        await request.reply(command.usage)

    return say


async def _pressed(request: Request) -> None:
    """A button of ours: its action is a word, the id of a task, and perhaps more."""
    assert isinstance(request.heard, Press)
    match request.heard.action.split():
        case [word, task_id] if word == STOP:
            request.arguments = task_id
            await stop(request)
        case [word, task_id] if word == OUTPUT:
            request.arguments = task_id
            await output(request)
        case [word, task_id, tag] if word == ANSWER:
            await await_answer(request, task_id, tag)
        case [word, task_id, tag, number] if word == CHOOSE and number.isdecimal():
            await choose(request, task_id, tag, int(number[:4]))
        case _:
            pass  # of another version, or no button of ours
