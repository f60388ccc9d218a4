"""Where requests are dealt with: one message in hand, and everything that answering it may use.

What is started for a message and what is replied to it have names that come from the message alone:
dealt with again after a crash, nothing starts or is said twice. Touches what the desk holds.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backburner.gateway import wording
from backburner.gateway.cards import Cards
from backburner.gateway.journal import Card, Journal
from backburner.gateway.letters import File, written
from backburner.gateway.memory import Memory
from backburner.gateway.platform import Button, Limits, Message, Press
from backburner.gateway.posting import Lines
from backburner.model.ids import id_for
from backburner.model.values import value
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task
    from backburner.gateway.registry import Commands
    from backburner.gateway.talking import Talking


@value
class Rights:
    """What people on the list may do, and where."""

    jobs: bool = False
    """Start shell commands: whoever may that can do whatever the owner of the home can."""
    folder: str | None = None
    """Where jobs and file tools work; None for a folder of each chat's own."""


@dataclass(slots=True)
class Desk:
    """The parts of a gateway that requests use."""

    platform: str
    backburner: "Backburner"
    journal: Journal
    lines: Lines
    limits: Limits
    cards: Cards
    memory: Memory
    talking: "Talking"
    commands: "Commands"
    rights: Rights
    zone: str
    """Whose clocks /schedule means."""


@dataclass(slots=True)
class Request:
    """One thing that was heard, of somebody who may speak."""

    desk: Desk
    heard: Message | Press
    scope: Scope
    arguments: str = ""
    replies: int = 0

    @property
    def session(self) -> "Session":
        """Where the tasks of this chat are."""
        assert self.scope.session is not None
        return self.desk.backburner.session(
            self.scope.session, owner=self.scope.owner, folder=self.desk.rights.folder
        )

    @property
    def task_id(self) -> str:
        """The id of what this starts: the same when it is taken up again after a crash."""
        heard = self.heard
        thread = heard.place.thread or ""
        return id_for("gateway", self.desk.platform, heard.place.chat, thread, heard.key)

    async def reply(
        self, text: str, *, buttons: tuple[Button, ...] = (), files: tuple[File, ...] = ()
    ) -> str | None:
        """Answer where it was said. The id of the post, where there is one."""
        kind = "reply" if isinstance(self.heard, Message) else "press"
        place = self.heard.place
        name = f"{kind}:{place.chat}:{self.heard.key}:{self.replies}"
        self.replies += 1
        letter = written(name, place, text, self.desk.limits, buttons=buttons, files=files)
        return await self.desk.lines.to(place).reply(letter)

    async def reply_started(self, task: "Task") -> None:
        """B2; from then on the reply shows how the task goes on."""
        text = wording.started(task.record)
        post = await self.reply(text, buttons=wording.buttons(task.record))
        if post is not None and self.desk.limits.edits:
            record = task.record
            card = Card(task.id, record.owner, record.session, self.heard.place, post)
            self.desk.cards.show(card, text)
