"""A1: what can be no command is refused in words, before anything is written."""

from typing import Any

import pytest

from backburner.model.errors import UsageError
from backburner.work.shell import ShellCommand


@pytest.mark.parametrize(
    ("command", "env", "said"),
    [
        ("", {}, "empty"),
        ([], {}, "empty"),
        ("a\0b", {}, "NUL"),
        (["sleep", 3], {}, "list of texts"),
        ("true", {"N": 3}, "list of texts"),
        ("true", {"A=B": "x"}, "contains ="),
    ],
)
def test_a1_what_can_be_no_command_is_refused(command: Any, env: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ShellCommand(command, "/", env)
