"""All that a record does, of any database: its changes, its reads, and who hears of them."""

from collections.abc import Callable

from backburner.store.news import Listener, News
from backburner.store.record.messages import MessageChanges
from backburner.store.record.questions import QuestionChanges
from backburner.store.record.reads import Reads
from backburner.store.record.runs import RunChanges
from backburner.store.record.schedules import ScheduleChanges
from backburner.store.record.settings import SettingChanges
from backburner.store.record.signals import SignalChanges
from backburner.store.record.tasks import TaskChanges
from backburner.store.record.tokens import TokenChanges


class Record(
    TaskChanges,
    RunChanges,
    SignalChanges,
    QuestionChanges,
    MessageChanges,
    ScheduleChanges,
    SettingChanges,
    TokenChanges,
    Reads,
):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}
        self._outages: dict[object, Callable[[str | None], None]] = {}

    def _changed(self, news: News | None = None) -> None:
        for listener in list(self._listeners.values()):
            listener(news)

    def on_news(self, listener: Listener) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    def on_change(
        self, listener: Callable[[], None], concerns: Callable[[News], bool] | None = None
    ) -> Callable[[], None]:
        def heard(news: News | None) -> None:
            if news is None or concerns is None or concerns(news):
                listener()

        return self.on_news(heard)

    def _outage(self, reason: str | None) -> None:
        for listener in list(self._outages.values()):
            listener(reason)

    def on_outage(self, listener: Callable[[str | None], None]) -> Callable[[], None]:
        token = object()
        self._outages[token] = listener
        return lambda: self._outages.pop(token, None) and None
