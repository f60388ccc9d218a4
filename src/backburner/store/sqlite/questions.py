"""The changes of questions: asked by a job, answered by anyone, withdrawn by the job."""

from backburner.model import clock
from backburner.model.events import EventKind
from backburner.model.signals import NewSignal, SignalKind, ask_key
from backburner.model.task import Task
from backburner.store.protocol import Scope
from backburner.store.sqlite.changes import Changes
from backburner.store.sqlite.reader import within
from backburner.store.sqlite.transaction import Statements


class QuestionChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def ask(
        self, task_id: str, attempt: int, question: str, text: str, *, reported: int | None = None
    ) -> bool:
        def operation(run: Statements) -> bool:
            now = clock.now()
            _note_reported(run, task_id, attempt, reported)
            task = run.task("task_get", id=task_id)
            if task is None or task.attempt != attempt or task.state.terminal:
                return False
            if not run.rows(
                "question_ask", task=task.seq, attempt=attempt, id=question, text=text, now=now
            ):
                return False
            asking = run.task("task_asks", id=task_id, attempt=attempt)
            if asking is None:
                raise ValueError(f"{task_id} asks before it runs")
            data = {"question": question, "text": text}
            run.add_event(asking, EventKind.ASKED, data)
            key = ask_key(task_id, attempt, question)
            sentence = f"{task.title} ({task_id}) asks: {text}"
            run.tell(asking, NewSignal(SignalKind.INPUT_REQUIRED, key, sentence, data), now)
            return True

        return await self._writer.write(operation)

    async def answer(
        self, task_id: str, scope: Scope, answer: str, *, question: str | None = None
    ) -> str | None:
        def operation(run: Statements) -> str | None:
            task = run.task("task_get", id=task_id)
            if task is None or not within(task, scope) or task.state.terminal:
                return None
            row = run.row(
                "question_answer", task=task.seq, id=question, answer=answer, now=clock.now()
            )
            if row is None:
                return None
            _close(run, task, row[0], EventKind.ANSWERED, "it was answered")
            return row[0]

        return await self._writer.write(operation)

    async def withdraw(
        self, task_id: str, attempt: int, question: str, *, reported: int | None = None
    ) -> bool:
        def operation(run: Statements) -> bool:
            _note_reported(run, task_id, attempt, reported)
            task = run.task("task_get", id=task_id)
            if task is None or task.attempt != attempt:
                return False
            if not run.rows("question_withdraw", task=task.seq, attempt=attempt, id=question):
                return False
            _close(run, task, question, EventKind.WITHDRAWN, "nobody waits for the answer")
            return True

        return await self._writer.write(operation)

    async def handed_on(self, task_id: str, attempt: int, question: str) -> bool:
        return bool(
            await self._count("question_handed_on", task=task_id, attempt=attempt, id=question)
        )


def _note_reported(run: Statements, task_id: str, attempt: int, reported: int | None) -> None:
    if reported is not None:
        run.rows("task_reported", id=task_id, attempt=attempt, reported=reported)


def _close(run: Statements, task: Task, question: str, kind: EventKind, reason: str) -> None:
    """A question is no longer open: its task may go on, and nobody needs to be told of it."""
    answered = run.task("task_is_answered", id=task.id, attempt=task.attempt)
    if answered is not None:
        run.add_event(answered, kind, {"question": question})
    key = ask_key(task.id, task.attempt, question)
    run.rows("signal_answered", task=task.seq, key=key, reason=reason)
