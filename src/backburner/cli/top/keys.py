"""The keys of `top`, and the page that lists them."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

BINDINGS: list[BindingType] = [
    Binding("ctrl+c", "leave(130)", priority=True, show=False),
    Binding("q", "leave(0)", show=False),
    Binding("question_mark,f1", "keys", show=False),
    Binding("enter", "open", show=False),
    Binding("escape", "out", show=False),
    Binding("tab", "other_pane", show=False),
    Binding("J,shift+down", "scroll_output(1)", show=False),
    Binding("K,shift+up", "scroll_output(-1)", show=False),
    Binding("slash", "search", show=False),
    Binding("a", "active", show=False),
    Binding("s", "sessions", show=False),
    Binding("A", "answer", show=False),
    Binding("x", "stop(False)", show=False),
    Binding("X", "stop(True)", show=False),
    Binding("r", "rerun", show=False),
]

_PAGE = (
    ("↑ ↓  j k", "another task, or scroll the output"),
    ("PgUp PgDn", "a screen up or down"),
    ("g G", "to the beginning, to the end"),
    ("Enter", "the output in full; answers where a task asks"),
    ("Esc", "back"),
    ("Tab", "between the list and the output"),
    ("J K", "scroll the output from the list"),
    ("/", "search in id, title and command"),
    ("a", "active tasks, or all"),
    ("s", "this session, or all"),
    ("x", "stop it (TERM, a grace, KILL)"),
    ("X", "stop it by force (KILL)"),
    ("A", "answer its question"),
    ("r", "run it again"),
    ("q  Ctrl-C", "leave; every job goes on"),
)


def keys_table() -> Table:
    """The page."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for keys, meaning in _PAGE:
        table.add_row(keys, meaning)
    return table


def hints(width: int, *, full: bool, asks: bool, filtered: bool) -> Text:
    """The line at the foot: the keys that are worth knowing now, as many as fit."""
    if full:
        known = [("Esc", "back"), ("G", "follow"), ("x", "stop"), ("r", "rerun"), ("q", "quit")]
    else:
        known = [("⏎", "output"), ("/", "search"), ("x", "stop"), ("?", "keys"), ("q", "quit")]
        known += [("a", "active"), ("s", "sessions"), ("r", "rerun"), ("Tab", "output")]
    if asks:
        known = [("A", "answer"), *(each for each in known if each[0] != "⏎")]
    if filtered and not full:
        known = [("Esc", "end search"), *known]
    text = Text(" ", no_wrap=True)
    for keys, meaning in known:
        if len(text) + len(keys) + len(meaning) + 2 > width:
            break
        text.append(keys, style="bold").append(f" {meaning}   ", style="dim")
    text.rstrip()
    return text


class Keys(ModalScreen[None]):
    """The page of keys, over the view; any key but those that scroll takes it away."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def compose(self) -> ComposeResult:
        """A box."""
        with VerticalScroll() as box:
            box.border_title = "keys"
            yield Static(keys_table(), markup=False)

    def on_key(self, event: events.Key) -> None:
        """Any key."""
        if event.key in {"up", "down", "pageup", "pagedown", "home", "end", "ctrl+c"}:
            return
        event.stop()
        event.prevent_default()
        self.dismiss()

    def on_click(self) -> None:
        """A click, too."""
        self.dismiss()
