"""The guard before everything that a handle can change: the policy of its session is asked first.

Each public method of a handle that changes something is marked with what it does. A test holds
that none is without a mark.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from backburner.model import clock, ids
from backburner.model.policy import DRY_RUN, FREE, Action, Policy
from backburner.model.states import Kind, State
from backburner.model.task import Task as TaskRecord
from backburner.model.task import preview
from backburner.store.protocol import Scope

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

_SHOWN_CHARS = 200


class Acting(Protocol):
    """A handle with a policy."""

    policy: Policy

    async def _played(self, name: str, given: Mapping[str, Any]) -> Any:
        """What a dry run answers to the method of this name, called with these arguments.

        What the method itself would refuse is refused here too, where that is simple to know.
        """
        ...


Handle = TypeVar("Handle", bound=Acting)
Method = Callable[Concatenate[Handle, Parameters], Coroutine[Any, Any, Answer]]


def acts(
    action: Action,
) -> Callable[[Method[Handle, Parameters, Answer]], Method[Handle, Parameters, Answer]]:
    """Mark a method with what it does: it is refused, or only played, where the policy says so."""

    def mark(method: Method[Handle, Parameters, Answer]) -> Method[Handle, Parameters, Answer]:
        @functools.wraps(method)
        async def guarded(
            self: Handle, /, *given: Parameters.args, **named: Parameters.kwargs
        ) -> Answer:
            if self.policy is not FREE:
                self.policy.check(action)
                if self.policy.plays(action):
                    bound = inspect.signature(method).bind(self, *given, **named)
                    bound.apply_defaults()
                    _, *arguments = bound.arguments.items()
                    played = self._played  # pyright: ignore[reportPrivateUsage]  # of handles
                    return await played(method.__name__, dict(arguments))
            return await method(self, *given, **named)

        guarded.__dict__["action"] = action
        return guarded

    return mark


def unrecorded(scope: Scope, kind: Kind, said: str) -> TaskRecord:
    """The record of a task that a dry run would have started. It is nowhere on disk."""
    what = preview(said, _SHOWN_CHARS)
    return TaskRecord(
        seq=0,
        id=ids.new_id(),
        owner=scope.owner,
        session=scope.session or "",
        kind=kind,
        title=preview(said),
        spec={},
        state=State.QUEUED,
        attempt=1,
        created_at=clock.now(),
        detail=f"{DRY_RUN} would run: {what}",
    )


def said_only(record: TaskRecord, what: str) -> TaskRecord:
    """The record of a task as it is, with what a dry run would have done to it."""
    return replace(record, detail=f"{DRY_RUN} would {what} {record.id}")
