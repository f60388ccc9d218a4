"""The changes of messages: sent to a task, taken by it; and what it says it is doing, told."""

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.errors import LimitReached, StoreAway
from backburner.model.events import EventKind
from backburner.model.limits import MESSAGES_MAX
from backburner.model.messages import Message
from backburner.model.signals import NewSignal, SignalKind, SignalState, activity_key
from backburner.model.task import Task
from backburner.model.telling import said_text
from backburner.model.wake import ACTIVITY_EVERY_S, Wake, wake_of
from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes
from backburner.store.record.leases import LeaseClock
from backburner.store.record.reading import within
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Statements


class MessageChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def send_message(self, task_id: str, scope: Scope, text: str) -> int | None:
        def operation(run: Statements) -> int | None:
            task = run.task("task_get", id=task_id)
            if task is None or not within(task, scope) or task.state.terminal:
                return None
            row = run.row(
                "message_send", task=task_id, text=text, now=run.now(), limit=MESSAGES_MAX
            )
            if row is None:
                raise LimitReached(
                    f"{MESSAGES_MAX} messages wait for {task_id}, and that is the limit",
                    remedy="wait until it has read some",
                )
            talked = run.task("task_is_talked_about", id=task_id, attempt=task.attempt)
            if talked is not None:
                run.add_event(talked, EventKind.SENT, {"number": row[0]})
            return row[0]

        return await self._writer.write(operation, owner=scope.owner)

    async def next_message(self, task_id: str, attempt: int, after: int = 0) -> Message | None:
        # Read first: whoever waits for a message looks at every change, and seldom finds one.
        message = await self._look(lambda read: read.next_message(task_id, attempt, after))
        if message is None or await self._surely_taken(message):
            return message
        return await self.next_message(task_id, attempt, message.number)

    async def _surely_taken(self, message: Message) -> bool:
        """Whether it is ours. One that the record has given us before it was lost would reach

        nobody, so it is asked again.
        """
        again = False
        while True:
            try:
                return await self._taken(message.task, message.attempt, message.number, again=again)
            except StoreAway:
                again = True

    async def taken(self, task_id: str, attempt: int, number: int) -> bool:
        return await self._taken(task_id, attempt, number, again=False)

    async def _taken(self, task_id: str, attempt: int, number: int, *, again: bool) -> bool:
        count = await self._count(
            "message_taken", task=task_id, attempt=attempt, number=number, again=again
        )
        return bool(count)


def tell_activity(
    run: Statements, task: Task, detail: str, now: Instant, leases: LeaseClock
) -> None:
    """What a task says it is doing, where its session wants to hear of it: the latest, in time."""
    if wake_of(task.spec) is not Wake.ON_ACTIVITY or task.state.terminal:
        return
    text = said_text(task.title, task.id, detail)
    data = {"status": detail}
    prefix = activity_key(task.id)
    state, told_at = run.row("activity_last", task=task.seq, prefix=prefix) or (None, None)
    if state == SignalState.PENDING:
        run.rows("activity_replace", task=task.seq, prefix=prefix, text=text, data=to_json(data))
        return
    window = round(ACTIVITY_EVERY_S * clock.SECOND)
    # A clock that was set back cannot make the wait longer.
    wait = 0 if told_at is None else min(window, told_at + window - now)
    if wait > 0 and state == SignalState.DROPPED:
        return
    row = run.row("task_get_events", id=task.id)
    number = row[0] if row else 0
    start = (leases.boot, leases.now() + wait) if wait > 0 else None
    run.tell(
        task,
        NewSignal(SignalKind.MESSAGE, activity_key(task.id, number), text, data),
        now,
        start=start,
    )
