"""The plain `ls` that is read without typer: the same options, the same meaning, little to load."""

import functools
import subprocess
import sys
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from backburner.cli.listing import Listing
from backburner.cli.program import build
from backburner.cli.quick import FLAGS, VALUES, read_plain_ls
from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def read_by_typer(argv: list[str]) -> Listing:
    answer: Any = build("ls")(args=["ls", *argv], prog_name="backburner", standalone_mode=False)
    assert isinstance(answer, functools.partial)
    return Listing(**answer.keywords)


def test_it_knows_every_option_but_help_and_watch() -> None:
    command = typer.main.get_command(build("ls"))
    ls: Any = getattr(command, "commands")["ls"]  # noqa: B009 - typer's types do not say so
    known = {option for parameter in ls.params for option in parameter.opts}
    assert known - {"--watch", "--help", "-h"} == {*FLAGS, *VALUES}


words = st.one_of(
    st.sampled_from(sorted(FLAGS)).map(lambda flag: [flag]),
    st.tuples(st.sampled_from(sorted(VALUES)), st.sampled_from(["x", "running", "", "a=b"])).map(
        list
    ),
    st.sampled_from(sorted(VALUES)).map(lambda name: [f"{name}=v=w"]),
)


@given(st.lists(words, max_size=5))
def test_what_it_reads_is_what_typer_reads(parts: list[list[str]]) -> None:
    argv = [word for part in parts for word in part]
    assert read_plain_ls(argv) == read_by_typer(argv)


@pytest.mark.parametrize(
    "argv", [["--help"], ["--watch"], ["-aq"], ["--frob"], ["--home"], ["extra"], ["--"], ["-h"]]
)
def test_what_needs_an_explanation_is_left_to_typer(argv: list[str]) -> None:
    assert read_plain_ls(argv) is None


@pytest.mark.parametrize("active", [False, True])
def test_ls_loads_nothing_that_is_slow_to_load(backburner: Program, active: bool) -> None:
    if active:
        backburner("run", "--", "sleep 60")
        wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    program = (
        "import sys; from backburner.cli import main; sys.argv = ['backburner', 'ls'];"
        "main(); print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    loaded = set(done.stdout.split())
    assert "backburner.runtime.glance" in loaded
    slow = {"asyncio", "typer", "rich", "psutil", "subprocess", "pydantic", "importlib.resources"}
    assert not slow & loaded
    assert not {"psycopg", "procrastinate"} & loaded
    backburner("stop", "--all")
