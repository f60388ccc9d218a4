"""A command-line agent: any program that takes a prompt and prints its answer.

It runs as a process of the keeper, so that it outlives the application that asked.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, get_args

from backburner.model.errors import UsageError
from backburner.model.values import value
from backburner.work.agents.attachments import Attachment

PromptBy = Literal["argument", "stdin"]

_WORD_MAX_BYTES = 120 * 1024
"""The kernel takes 128 KiB in one word."""


ATTACHED = "\n\nAttached files:\n"
"""Stands between a prompt and the paths of its files, one in each line."""


@value
class CommandAgent:
    """`CommandAgent(["claude", "-p"])`: the prompt is its last argument, or its standard input.

    Its standard output is the answer where it ends with 0. ``env`` goes on top of the environment
    of whoever asks; ``cwd`` is theirs unless told.
    """

    command: Sequence[str]
    prompt: PromptBy = "argument"
    cwd: str | os.PathLike[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if isinstance(self.command, str) or not self.command:
            raise UsageError(
                "the command of an agent is a list of words", remedy='such as ["claude", "-p"]'
            )
        if self.prompt not in get_args(PromptBy):
            raise UsageError(
                f"a prompt cannot be given by {self.prompt!r}", remedy="use argument or stdin"
            )

    def argv(self, prompt: str) -> list[str]:
        """The words to start. A prompt that looks like an option does not become one."""
        if self.prompt == "stdin":
            return list(self.command)
        if "\0" in prompt:
            raise UsageError("a prompt for a program cannot hold a NUL character")
        if len(prompt.encode()) > _WORD_MAX_BYTES:
            raise UsageError(
                f"a prompt of more than {_WORD_MAX_BYTES // 1024} KiB is too long for an argument",
                remedy='let the program read it: CommandAgent(…, prompt="stdin")',
            )
        return [*self.command, f" {prompt}" if prompt.startswith("-") else prompt]


def with_attachments(prompt: str, attachments: Sequence[Attachment]) -> str:
    """The prompt for a program, which is told where the files lie. UsageError for mere bytes."""
    if not attachments:
        return prompt
    paths: list[str] = []
    for each in attachments:
        if each.path is None:
            raise UsageError(
                "a command-line agent takes attachments by their paths only",
                remedy="write it to a file first",
            )
        paths.append(each.path)
    return prompt + ATTACHED + "\n".join(paths)
