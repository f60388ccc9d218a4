"""What every store promises of the talk between tasks and sessions: questions, messages, ends.

Part of `backburner.store.protocol.Store`, whose rules hold here: a method is one transaction.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from backburner.model.messages import Message
from backburner.model.questions import Question
from backburner.model.task import Task

if TYPE_CHECKING:
    from backburner.store.protocol import Scope


class Conversation(Protocol):
    """Questions and messages of tasks, and sessions that have ended."""

    # Questions

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
        """running → input_required, and tell. False where it was asked before, or has ended."""
        ...

    async def ask_approval(
        self, task_id: str, owner: str, asker: str, question: str, text: str, *, grace_s: float
    ) -> Task | None:
        """Ask the session of a task whether it may be stopped, for another one of the same owner.

        The task goes on, and is not told; the answer "yes" asks for its end, with this grace.
        None where there is no such active task of the owner.
        """
        ...

    async def answer(
        self, task_id: str, scope: "Scope", answer: str, *, question: str | None = None
    ) -> str | None:
        """Answer a question, else the oldest that the task has open. Which one; None where none is.

        The last one answered: input_required → running. An approval is answered by its id only,
        and one that is granted is a stop request in the same transaction.
        """
        ...

    async def withdraw(
        self, task_id: str, attempt: int, question: str, *, reported: int | None = None
    ) -> bool:
        """Whoever asked waits no longer. False where it was not open."""
        ...

    async def questions(self, task_id: str, scope: "Scope | None" = None) -> list[Question]:
        """The questions of the present attempt, approvals among them, oldest first."""
        ...

    async def answers(self) -> list[Question]:
        """Answers to running tasks that have not been handed on to their jobs."""
        ...

    async def handed_on(self, task_id: str, attempt: int, question: str) -> bool:
        """The answer has reached the job."""
        ...

    # Messages

    async def send_message(self, task_id: str, scope: "Scope", text: str) -> int | None:
        """Tell a task something; its number. None where there is none such that has not ended.

        LimitReached where too many wait for it.
        """
        ...

    async def next_message(self, task_id: str, attempt: int, after: int = 0) -> Message | None:
        """Take the first message above this number that has not reached the task; it now has.

        None where there is none, or the attempt is over.
        """
        ...

    async def messages(self) -> list[Message]:
        """What has not reached tasks that run as processes, in order for each."""
        ...

    async def taken(self, task_id: str, attempt: int, number: int) -> bool:
        """The message has reached this attempt. False where it had reached one before."""
        ...

    # Sessions

    async def end_session(self, scope: "Scope") -> None:
        """What it has not been told, and what comes, is dropped: until something starts in it."""
        ...

    async def session_ended(self, scope: "Scope") -> bool:
        """Whether it has ended, and nothing has started in it since."""
        ...
