"""`backburner mcp`: what it refuses before it serves anybody."""

import socket
from pathlib import Path

import pytest

from backburner.cli.program import run_program
from backburner.model.errors import UsageError


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--wrap"], "needs the command or the address"),
        (["npx", "some-server"], "for --wrap only"),
        (["--json"], "--json goes with --http"),
        (["--tokens"], "--tokens goes with --http"),
        (["--budget", "soon"], "--budget"),
        (["--http", "70000"], "--http"),
        (["--http", "0", "--host", "0.0.0.0"], "not encrypted"),
        (["--http", "0", "--host", "example.com", "--wrap", "--", "x"], "not encrypted"),
    ],
)
def test_x6_mistakes_on_the_command_line_are_told(home: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        run_program(["mcp", *words])
    assert said in str(refused.value)


@pytest.mark.parametrize("more", [[], ["--wrap", "--", "true"]])
def test_x6_a_port_that_is_taken_is_told(home: Path, more: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(UsageError, match=f"port {port} cannot be used"):
            run_program(["mcp", "--http", port, *more])
