"""The terminal as a chat platform: a line to type in below, and above it what is said.

Commands are completed after a `/`, ids of tasks after the commands that take one. What was typed is
kept in a file for its owner alone. Output comes above the line that is being typed, and leaves it.
"""

import contextlib
import os
import sys
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import CompleteStyle

from backburner.gateway.people import LocalPerson
from backburner.gateway.platform import Heard, Limits, MenuEntry, Message, Person, Place, Post
from backburner.gateway.registry import Commands
from backburner.gateway.wording import safe
from backburner.model.values import value

PROMPT = "› "
THINKING = "thinking… › "
LEAVING = frozenset({"/quit", "/exit"})
_REFRESH_S = 0.5
_TEXT_MAX_CHARS = 100_000
_SHOWN_IDS = 20

Tasks = Callable[[], Awaitable[Sequence[tuple[str, str]]]]
"""Ids and titles of the tasks that a command may mean, newest first."""


@value
class Behind:
    """What the terminal needs to know of what is behind it."""

    commands: Commands
    tasks: Tasks
    is_answering: Callable[[], bool]
    """Whether the agent is at it."""
    interrupt: Callable[[], Awaitable[bool]]
    """End the answer that is being written, if one is."""
    greet: Callable[[], Awaitable[str]]


class Terminal:
    """See `backburner.gateway.platform.Platform` for what each method promises."""

    def __init__(self, history: str) -> None:
        self._history = history
        self._behind: Behind | None = None
        self.interrupted = False
        """Whether Ctrl-C was how it was left."""

    @property
    def name(self) -> str:
        """Its name."""
        return "terminal"

    @property
    def limits(self) -> Limits:
        """A terminal takes long texts; files are named, not sent."""
        return Limits(_TEXT_MAX_CHARS, len, enclosure_bytes=0, edits=False)

    def connect(self, behind: Behind) -> None:
        """Before `listen`."""
        self._behind = behind

    async def listen(
        self,
        hear: Callable[[Heard], Awaitable[None]],
        menu: Sequence[MenuEntry],  # noqa: ARG002 - completion shows the same
    ) -> None:
        """Read lines until Ctrl-D, /quit, or Ctrl-C on an empty line."""
        assert self._behind is not None
        person = Person(str(os.getuid()), "you")
        os.close(os.open(self._history, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        is_answering = self._behind.is_answering
        prompt: PromptSession[str] = PromptSession(
            lambda: THINKING if is_answering() else PROMPT,
            refresh_interval=_REFRESH_S,
            history=_History(self._history),
            completer=Completing(self._behind),
            complete_while_typing=True,
            complete_style=CompleteStyle.COLUMN,
            enable_open_in_editor=False,
            key_bindings=_keys(),
        )
        with patch_stdout():
            _print(await self._behind.greet())
            while True:
                try:
                    text = await prompt.prompt_async()
                except EOFError:
                    return
                except KeyboardInterrupt:
                    if prompt.default_buffer.text or await self._behind.interrupt():
                        continue
                    self.interrupted = True
                    return
                if text.strip() in LEAVING:
                    return
                if text.strip():
                    heard = Message(uuid.uuid4().hex, LocalPerson.PLACE, person, text)
                    try:
                        await hear(heard)
                    except OSError as error:
                        _print(f"This was not heard: {error.strerror}.")

    async def post(self, place: Place, post: Post) -> str:  # noqa: ARG002 - there is one place
        """Show it above the line."""
        _print(post.text)
        return post.key

    async def edit(self, place: Place, post_id: str, post: Post) -> None:
        """Never asked for: what is on a terminal stays."""


class _History(FileHistory):
    """What was typed. On a full disk it is not remembered."""

    def store_string(self, string: str) -> None:
        """Keep a line."""
        with contextlib.suppress(OSError):
            super().store_string(string)


def _keys() -> KeyBindings:
    """Alt-Enter begins a new line: a shell block has several."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.insert_text("\n")

    return keys


def _print(text: str) -> None:
    sys.stdout.write(f"{safe(text)}\n\n")
    sys.stdout.flush()


class Completing(Completer):
    """Commands after a `/`, and ids of tasks where a command takes one."""

    def __init__(self, behind: Behind) -> None:
        self._behind = behind

    def get_completions(
        self,
        document: Document,  # noqa: ARG002 - the library's signature
        complete_event: CompleteEvent,  # noqa: ARG002 - the same
    ) -> list[Completion]:
        """Only for who does not wait; we do."""
        return []

    async def get_completions_async(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the library's signature
    ) -> AsyncGenerator[Completion]:
        """What the text before the cursor may become."""
        before = document.text_before_cursor
        if not before.startswith("/"):
            return
        name, space, rest = before.partition(" ")
        if not space:
            for completed, summary in self._behind.commands.completions(name):
                yield Completion(completed, -len(name), display_meta=summary)
            return
        command = self._behind.commands.find(name[1:])
        if command is None or not command.takes_task or " " in rest:
            return
        found = [each for each in await self._behind.tasks() if each[0].startswith(rest)]
        for task_id, title in found[:_SHOWN_IDS]:
            yield Completion(task_id, -len(rest), display_meta=title)
