"""What keys do to a task, through its handle; each answers the sentence that says how it went."""

from backburner.app import Task as Handle
from backburner.cli import phrases
from backburner.model.states import State


async def stop(task: Handle, *, force: bool) -> str:
    """End it and everything that it has started."""
    before = task.record
    await task.stop(force=force)
    name = before.title
    if before.state.terminal and before.leftovers:
        return f"{phrases.processes(before.leftovers)} that {name} left behind ended now"
    if task.state is State.CANCELED:
        return f"{name} was stopped"
    return f"{name} ended by itself first: it {phrases.ending(task.record)}"


async def send(task: Handle, text: str, *, question: str | None) -> str:
    """The answer to this very question; without one, a line for its standard input."""
    answered = await task.send(text, question=question)
    return f"{task.record.title} has its {'answer' if answered else 'input'}"
