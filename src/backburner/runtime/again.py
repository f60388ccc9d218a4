"""A task that is there, to be carried out once more as a new one."""

from backburner.model.errors import UsageError
from backburner.model.limits import Settings
from backburner.model.states import Kind
from backburner.model.task import Task
from backburner.work import shell
from backburner.work.assignment import Assignment


def assignment_again(task: Task, settings: Settings) -> Assignment:
    """The same work, with this process's environment. UsageError where that is not possible."""
    match task.kind:
        case Kind.SHELL:
            return shell.assignment(shell.ShellCommand.from_spec(task.spec), settings)
        case Kind.PYTHON:
            from backburner.work import python  # not for everyone who runs a command

            return python.assignment(python.PythonCall.from_spec(task.spec), settings)
        case Kind.TOOL:
            raise UsageError(
                f"{task.id} is a run of the tool {task.spec.get('tool')!r}: only the application "
                "that has it can start it again",
                remedy="spawn the tool anew",
            )
        case Kind.AGENT:
            raise UsageError(
                f"{task.id} is the work of an agent, which would not do the same again",
                remedy="ask the agent anew",
            )
