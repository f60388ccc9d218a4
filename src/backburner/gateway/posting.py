"""Sending letters: in each place one after the other, no faster than people read.

A post that was made is noted at once, so that a letter goes on where it was cut off. What a place
does not take now holds nothing up elsewhere.
"""

import asyncio
import logging
import mimetypes
import os
from collections import OrderedDict
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, TypeVar

from backburner.gateway.journal import Journal
from backburner.gateway.letters import File, Letter
from backburner.gateway.media import read_file
from backburner.gateway.platform import Enclosure, Later, Place, Platform, Post, Refused
from backburner.model.values import value

_log = logging.getLogger("backburner.gateway")

T = TypeVar("T")

PATIENCE_S = 600.0
"""How long the reply to a message is tried: later nobody remembers what was asked."""

_POST_LIMIT_S = 90.0
_LAST_POST_S = 5.0
"""For a post that is being made when the gateway leaves."""
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_TURN_WAIT_S = 5.0
"""How long a signal waits for a reply that is being sent, before it lets others go first."""

_LINES_MAX = 1_000


@value
class Pace:
    """How fast posts may follow each other in one place: what the strictest platform allows."""

    burst: int = 5
    every_s: float = 1.0


PEOPLE_READ = Pace()
"""As fast as people read."""


class Lines:
    """The lines to all places."""

    def __init__(self, platform: Platform, journal: Journal, pace: Pace) -> None:
        self._platform = platform
        self._journal = journal
        self._pace = pace
        self._lines: OrderedDict[Place, Line] = OrderedDict()

    def to(self, place: Place) -> "Line":
        """The line to this place."""
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = Line(self._platform, self._journal, place, self._pace)
        self._lines.move_to_end(place)
        idle = (each for each, known in self._lines.items() if known.idle)
        while len(self._lines) > _LINES_MAX and (oldest := next(idle, None)) is not None:
            del self._lines[oldest]
            idle = (each for each, known in self._lines.items() if known.idle)
        return line


class Line:
    """The line to one place."""

    def __init__(self, platform: Platform, journal: Journal, place: Place, pace: Pace) -> None:
        self._platform = platform
        self._journal = journal
        self._place = place
        self._pace = pace
        self._turn = asyncio.Lock()
        self._editing = asyncio.Lock()
        self._blocked_until = 0.0
        self._spent_until = 0.0
        """When the posts made so far would have been made, one after the other in the pace."""
        self._using = 0
        self._refused: set[str] = set()
        """Letters that a reply does not try again: whoever tells of them does."""

    @property
    def idle(self) -> bool:
        """Whether nobody would miss it."""
        return self._using == 0 and max(self._blocked_until, self._spent_until) < _now()

    async def reply(self, letter: Letter) -> str | None:
        """Send it, however long it takes within reason; None where it could not be.

        What was to be told here before it goes first. Answers the id of its last post of text.
        """
        deadline = _now() + PATIENCE_S
        earlier = self._journal.waiting(self._place)
        self._using += 1
        try:
            async with self._turn:
                return await self._patiently(letter, earlier, deadline)
        finally:
            self._using -= 1

    async def _patiently(
        self, letter: Letter, earlier: Sequence[Letter], deadline: float
    ) -> str | None:
        wait = _FIRST_WAIT_S
        while True:
            try:
                for each in earlier:
                    await self._send_before(each)
                return await self._send(letter)
            except Refused as error:
                _log.warning("a reply was refused: %s", error)
                break
            except Later as error:
                pause = max(error.after_s or wait, 0.0)
                wait = min(wait * 2, _LONGEST_WAIT_S)
                if _now() + pause > deadline:
                    _log.warning("a reply was given up: %s", error)
                    break
                self._blocked_until = _now() + pause
                await asyncio.sleep(pause)
        self._journal.arrived(letter.id)  # it is not tried again
        return None

    async def _send_before(self, letter: Letter) -> None:
        if letter.id not in self._refused:
            try:
                await self._send(letter)
            except Refused:
                self._refused.add(letter.id)

    async def tell(self, letter: Letter) -> None:
        """Send it now. `Later`, also where something else is being sent for long; `Refused`."""
        if (left := self._blocked_until - _now()) > 0:
            raise Later("the place takes nothing at present", left)
        self._using += 1
        try:
            try:
                async with asyncio.timeout(_TURN_WAIT_S):
                    await self._turn.acquire()
            except TimeoutError:
                raise Later("something else is being sent", _TURN_WAIT_S) from None
            try:
                await self._send(letter)
            except Later as error:
                self.block(error.after_s or 0.0)
                raise
            finally:
                self._turn.release()
        finally:
            self._using -= 1

    def block(self, seconds: float) -> None:
        """Nothing gets through: what comes meanwhile waits too, so that order is kept."""
        self._blocked_until = max(self._blocked_until, _now() + seconds)

    @property
    def wait_s(self) -> float:
        """How long an edit leaves the line to posts: a gateway that is started again has many."""
        spent = self._spent_until - self._pace.burst * self._pace.every_s / 2
        return max(0.0, self._blocked_until - _now(), spent - _now())

    async def edit(self, post_id: str, post: Post) -> None:
        """Change a post, one at a time and when nobody else needs the line. `Later`, `Refused`."""
        async with self._editing:
            while (wait := self.wait_s) > 0:  # noqa: ASYNC110 - for a time, which posts put off
                await asyncio.sleep(wait)
            await self._keep_pace()
            await _limited(self._platform.edit(self._place, post_id, post))

    async def _send(self, letter: Letter) -> str | None:
        if self._journal.has_sent(letter.id):
            return self._journal.last_post(letter.id)
        letter = self._journal.record(letter)
        for number in range(self._journal.posted(letter.id), letter.posts):
            post = await self._post(letter, number)
            if post is not None:
                await self._keep_pace()
            await _finished(self._make(letter, post))
        self._journal.arrived(letter.id)
        return self._journal.last_post(letter.id)

    async def _make(self, letter: Letter, post: Post | None) -> None:
        """One post, and the note that it was made."""
        made: str | None = None
        if post is not None:
            try:
                made = await _limited(self._platform.post(self._place, post))
            except Refused:
                if post.enclosure is None:
                    raise
                # The answer is there; it must not be lost for a picture.
                word = Post(post.key, f"{post.enclosure.name} could not be sent here.")
                await _limited(self._platform.post(self._place, word))
        is_text = post is not None and post.enclosure is None
        self._journal.post_made(letter.id, made if is_text else None)

    async def _post(self, letter: Letter, number: int) -> Post | None:
        """One of its posts; None for a file that is not there any more, or too large."""
        key = f"{letter.id}#{number}"
        if number < len(letter.parts):
            is_last = number == len(letter.parts) - 1
            return Post(key, letter.parts[number], letter.buttons if is_last else ())
        file = letter.files[number - len(letter.parts)]
        enclosure = await asyncio.to_thread(self._enclosure, file)
        return None if enclosure is None else Post(key, "", enclosure=enclosure)

    def _enclosure(self, file: File) -> Enclosure | None:
        data = read_file(file, self._platform.limits.enclosure_bytes)
        if data is None:
            return None
        name = os.path.basename(file.path)
        media_type, _ = mimetypes.guess_type(name)
        return Enclosure(name, media_type or "application/octet-stream", data)

    async def _keep_pace(self) -> None:
        every = self._pace.every_s
        self._spent_until = max(self._spent_until, _now()) + every
        ahead = self._spent_until - _now() - self._pace.burst * every
        if ahead > 0:
            await asyncio.sleep(ahead)


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Also where whoever waits is cancelled: a post that is made has to be noted."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working], timeout=_LAST_POST_S)
        working.cancel()
        raise


async def _limited(calling: Awaitable[T]) -> T:
    """What an adapter does, within a time. What it did not foresee may pass."""
    try:
        async with asyncio.timeout(_POST_LIMIT_S):
            return await calling
    except (Later, Refused):
        raise
    except TimeoutError:
        raise Later("the platform did not answer in time") from None
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        _log.warning("a post failed: %s", type(error).__name__)  # its text may hold a token
        raise Later(f"the platform could not be reached ({type(error).__name__})") from None


def _now() -> float:
    return asyncio.get_running_loop().time()
