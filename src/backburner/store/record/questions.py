"""The changes of questions: asked by a job, answered by anyone, withdrawn by the job."""

from collections.abc import Mapping
from typing import Any

from backburner.model.events import EventKind
from backburner.model.questions import APPROVAL_SCHEMA, is_yes
from backburner.model.signals import NewSignal, SignalKind, ask_key
from backburner.model.task import Task
from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes
from backburner.store.record.reading import within
from backburner.store.record.rows import to_json
from backburner.store.record.tasks import request_stop
from backburner.store.record.transaction import Statements


class QuestionChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def ask(
        self,
        task_id: str,
        attempt: int,
        question: str,
        text: str,
        *,
        schema: Mapping[str, Any] | None = None,
        reported: int | None = None,
    ) -> bool:
        fitting = None if schema is None else to_json(schema)

        def operation(run: Statements) -> bool:
            now = run.now()
            _note_reported(run, task_id, attempt, reported)
            task = run.task("task_get", id=task_id)
            if task is None or task.attempt != attempt or task.state.terminal:
                return False
            if not run.rows(
                "question_ask",
                task=task.seq,
                attempt=attempt,
                id=question,
                text=text,
                schema=fitting,
                asker=None,
                grace_s=None,
                now=now,
            ):
                return False
            asking = run.task("task_asks", id=task_id, attempt=attempt)
            if asking is None:
                raise ValueError(f"{task_id} asks before it runs")
            data: dict[str, Any] = {"question": question, "text": text}
            if schema is not None:
                data["schema"] = schema
            run.add_event(asking, EventKind.ASKED, data)
            key = ask_key(task_id, attempt, question)
            sentence = f"{task.title} ({task_id}) asks: {text}"
            run.tell(asking, NewSignal(SignalKind.INPUT_REQUIRED, key, sentence, data), now)
            return True

        return await self._writer.write(operation)

    async def ask_approval(
        self, task_id: str, owner: str, asker: str, question: str, text: str, *, grace_s: float
    ) -> Task | None:
        def operation(run: Statements) -> Task | None:
            now = run.now()
            task = run.task("task_get", id=task_id)
            if task is None or task.owner != owner or task.state.terminal:
                return None
            run.rows(
                "question_ask",
                task=task.seq,
                attempt=task.attempt,
                id=question,
                text=text,
                schema=to_json(APPROVAL_SCHEMA),
                asker=asker,
                grace_s=float(grace_s),
                now=now,
            )
            talked = run.task("task_is_talked_about", id=task_id, attempt=task.attempt)
            if talked is None:
                return None
            data = {"question": question, "text": text, "schema": APPROVAL_SCHEMA, "asker": asker}
            run.add_event(talked, EventKind.ASKED, data)
            key = ask_key(task_id, task.attempt, question)
            sentence = f"{task.title} ({task_id}): {text}"
            run.tell(talked, NewSignal(SignalKind.INPUT_REQUIRED, key, sentence, data), now)
            return task

        return await self._writer.write(operation, owner=owner)

    async def answer(
        self, task_id: str, scope: Scope, answer: str, *, question: str | None = None
    ) -> str | None:
        def operation(run: Statements) -> str | None:
            task = run.task("task_get", id=task_id)
            if task is None or not within(task, scope) or task.state.terminal:
                return None
            row = run.row(
                "question_answer", task=task.seq, id=question, answer=answer, now=run.now()
            )
            if row is None:
                return None
            name, grace_s = row
            about = grace_s is not None
            _close(run, task, name, EventKind.ANSWERED, "it was answered", about=about)
            if about and is_yes(answer):
                # At once: whoever asked may be gone, and the word of the owner holds all the same.
                request_stop(run, task, grace_s)
            return name

        return await self._writer.write(operation, owner=scope.owner)

    async def withdraw(
        self, task_id: str, attempt: int, question: str, *, reported: int | None = None
    ) -> bool:
        def operation(run: Statements) -> bool:
            _note_reported(run, task_id, attempt, reported)
            task = run.task("task_get", id=task_id)
            if task is None or task.attempt != attempt:
                return False
            row = run.row("question_withdraw", task=task.seq, attempt=attempt, id=question)
            if row is None:
                return False
            reason = "nobody waits for the answer"
            _close(run, task, question, EventKind.WITHDRAWN, reason, about=bool(row[1]))
            return True

        return await self._writer.write(operation)

    async def handed_on(self, task_id: str, attempt: int, question: str) -> bool:
        return bool(
            await self._count("question_handed_on", task=task_id, attempt=attempt, id=question)
        )


def _note_reported(run: Statements, task_id: str, attempt: int, reported: int | None) -> None:
    if reported is not None:
        run.rows("task_reported", id=task_id, attempt=attempt, reported=reported)


def _close(
    run: Statements, task: Task, question: str, kind: EventKind, reason: str, *, about: bool
) -> None:
    """A question is no longer open: its task may go on, and nobody needs to be told of it.

    One that was asked ``about`` the task has not kept it.
    """
    name = "task_is_talked_about" if about else "task_is_answered"
    answered = run.task(name, id=task.id, attempt=task.attempt)
    if answered is not None:
        run.add_event(answered, kind, {"question": question})
    key = ask_key(task.id, task.attempt, question)
    run.rows("signal_answered", task=task.seq, key=key, reason=reason)
