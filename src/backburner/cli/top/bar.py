"""The line at the foot of `top`: keys, a notice, a question to the person, or a line to type in."""

from collections.abc import Callable

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from backburner.cli.textwidth import clean, columns_of, cut
from backburner.model.values import value

_YES = ("y", "Y")
_NOTICE_S = 8.0
_HINT = "y yes · any other key no"
_SHORT_HINT = "y/n"


@value
class Typing:
    """A line that the person types."""

    label: str
    done: Callable[[str], None]
    """Called with what was typed."""
    changed: Callable[[str], None] | None = None
    """Called while it is typed."""
    given_up: Callable[[], None] | None = None
    text: str = ""


class Prompt(Input):
    """Where the person types."""

    def on_key(self, event: events.Key) -> None:
        """Escape gives up."""
        if event.key == "escape":
            event.stop()
            self.screen.query_one(Bar).give_up()


class Bar(Vertical):
    """One line; two while something is typed."""

    class Closed(Message):
        """Nothing is asked any more."""

    def __init__(self) -> None:
        super().__init__()
        self._typing: Typing | None = None
        self._asked: Callable[[], None] | None = None
        self._usual = Text()
        self._notice: Timer | None = None

    def compose(self) -> ComposeResult:
        """The line that says something, and the one to type in."""
        yield Static(id="said", markup=False)
        prompt = Prompt(compact=True, select_on_focus=False)
        prompt.display = False
        yield prompt

    @property
    def busy(self) -> bool:
        """Whether the person is being asked."""
        return self._typing is not None or self._asked is not None

    def usual(self, keys: Text) -> None:
        """What stands there when there is nothing else to say."""
        self._usual = keys
        if not self.busy and self._notice is None:
            self._say(keys)

    def notice(self, text: str, *, wrong: bool = False) -> None:
        """Something has happened; it stands there for a while."""
        if not self.busy:
            self.quiet()
            self._say(Text(f" {clean(text)}", style="red" if wrong else "bold"))
            self._notice = self.set_timer(_NOTICE_S, self.quiet)

    def quiet(self) -> None:
        """Take a notice away."""
        if self._notice is not None:
            self._notice.stop()
            self._notice = None
            if not self.busy:
                self._say(self._usual)

    def ask(self, question: str, yes: Callable[[], None]) -> None:
        """Do it if the person says so."""
        self.quiet()
        self._asked = yes
        question, width = clean(question), self.size.width - 3
        hint = _HINT if columns_of(question) + len(_HINT) <= width else _SHORT_HINT
        asked = Text(f" {cut(question, width - len(hint))}  ", style="bold")
        self._say(asked + Text(hint, style="dim"))
        self.can_focus = True  # only now: Tab goes past it
        self.focus()

    def type(self, typing: Typing) -> None:
        """Let the person type a line."""
        self.quiet()
        self._typing = typing
        self._say(Text(f" {clean(typing.label)}", style="bold"))
        prompt = self.query_one(Prompt)
        prompt.display = True
        prompt.value = typing.text
        prompt.cursor_position = len(typing.text)
        prompt.focus()

    def give_up(self) -> None:
        """The person does not want to type any more."""
        typing = self._typing
        self._close()
        if typing is not None and typing.given_up is not None:
            typing.given_up()

    def on_key(self, event: events.Key) -> None:
        """The answer to a question."""
        if self._asked is None or event.key == "ctrl+c":
            return
        event.stop()
        event.prevent_default()
        yes = self._asked
        self._close()
        if event.key in _YES:
            yes()

    def on_input_changed(self, event: Input.Changed) -> None:
        """While it is typed."""
        event.stop()
        if self._typing is not None and self._typing.changed is not None:
            self._typing.changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It was typed."""
        event.stop()
        typing = self._typing
        self._close()
        if typing is not None:
            typing.done(event.value)

    def _close(self) -> None:
        self._typing = self._asked = None
        self.can_focus = False
        self.query_one(Prompt).display = False
        self._say(self._usual)
        self.post_message(self.Closed())

    def _say(self, text: Text) -> None:
        self.query_one("#said", Static).update(text)
