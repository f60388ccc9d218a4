"""A wrapper that was born in its cgroup is like any other."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from backburner.work.process import cgroup, wrapper
from backburner.work.process.condition import Ended, inspect
from tests.faults.victims import (
    children_of,
)
from tests.waiting import wait_until
from tests.work.process.conftest import StartWrapper
from tests.work.process.launchers import PATH, Noting, output_of, waiting


@pytest.fixture
def nothing_handed_on() -> Iterator[None]:
    """What whoever started the tests has left open is for no child of ours."""
    fds = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
    there = [fd for fd in fds if os.path.lexists(f"/proc/self/fd/{fd}")]
    handed_on = [fd for fd in there if os.get_inheritable(fd)]
    for fd in handed_on:
        os.set_inheritable(fd, False)
    yield
    for fd in handed_on:
        os.set_inheritable(fd, True)


def test_it_is_in_its_cgroup_from_its_first_moment_and_a_child_of_ours(
    tmp_path: Path, group: str, ready: Noting
) -> None:
    with waiting(tmp_path, group, ready) as started:
        assert cgroup.members(group) == [started.pid] == ready.launched
        assert started.pid in children_of(os.getpid())
        assert wrapper.is_wrapper(started.pid)


FACTS = """
id
umask
pwd
nice
cat /proc/self/limits /proc/self/cgroup /proc/self/oom_score_adj
env | sort
grep -E '^(Sig[BIC]|Shd|Cap|NoNew|Seccomp:|Cpus_allowed:|Groups|Umask)' /proc/self/status
grep -E '^(PPid|Sig[BIC])' /proc/$PPID/status
ls /proc/$PPID/fd
for each in /proc/$$/fd/*; do echo "${each##*/} $(readlink "$each" | sed 's/:.*//')"; done
[ "$(cut -d' ' -f 5,6 /proc/$$/stat)" = "$PPID $PPID" ] && echo session of the wrapper
"""


@pytest.mark.usefixtures("nothing_handed_on")
def test_a_command_finds_everything_as_without_a_launcher(
    tmp_path: Path, group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    """Rights, limits, mark, signals, environment, descriptors, session and parents."""
    said: list[str] = []
    for each in (None, ready):
        started = start_wrapper(
            "sh", "-c", FACTS,
            group=group, launcher=each, separate_stderr=True,
            environment={**PATH, "GIVEN": "a b\nc"},
        )  # fmt: skip
        text = output_of(started).replace(started.folder.path, "FOLDER")
        assert str(started.tree.mark) in text
        said.append(text.replace(str(started.tree.mark), "MARK"))
        assert Path(started.folder.stderr).read_text() == ""
    assert len(ready.launched) == 1
    assert said[0].splitlines() == said[1].splitlines()
    assert "session of the wrapper" in said[0]
    assert f"PPid:\t{os.getpid()}\n" in said[0]


@pytest.mark.usefixtures("nothing_handed_on")
@pytest.mark.parametrize(
    "how", [{}, {"input": "pipe"}, {"stdin_text": "ä\n"}, {"separate_stderr": True}], ids=str
)
def test_a_wrapper_has_the_descriptors_that_it_has_without_a_launcher(
    tmp_path: Path, group: str, ready: Noting, how: dict[str, object]
) -> None:
    def waits(pid: int) -> bool:
        """Whether it reads the word: only now all that its shell has put away is there."""
        return os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:")

    def kinds(pid: int) -> dict[str, str]:
        fds = Path(f"/proc/{pid}/fd")
        return {each.name: os.readlink(each).split("[")[0] for each in fds.iterdir()}

    found: list[dict[str, str]] = []
    for each in (None, ready):
        with waiting(tmp_path, group, each, **how) as started:
            wait_until(partial(waits, started.pid))
            found.append(kinds(started.pid))
    assert len(ready.launched) == 1
    assert found[0] == found[1]


def test_an_environment_of_any_size_and_any_names_arrives(
    group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    environment = {
        **PATH,
        **{f"LARGE_{number}": str(number) * 50_000 for number in range(10)},
        "with.dot": "dots",
        "BYTES": "caf\udce9 \U0001f680",
        "EMPTY": "",
    }
    started = start_wrapper("env", "-0", group=group, launcher=ready, environment=environment)
    started.collect()
    assert ready.launched == [started.pid]
    pairs = Path(started.folder.log).read_bytes().rstrip(b"\0").split(b"\0")
    seen = dict(pair.split(b"=", 1) for pair in pairs)
    expected = {os.fsencode(name): os.fsencode(text) for name, text in environment.items()}
    assert expected.items() <= seen.items()


def test_what_it_reads_and_how_it_ended_arrive(
    group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    started = start_wrapper(
        "sh", "-c", "cat; exit 7", group=group, launcher=ready, stdin_text="ä" * 100_000
    )
    started.collect()
    assert ready.launched == [started.pid]
    assert inspect(started.folder) == Ended(7, by_signal=False)
    assert Path(started.folder.log).read_text() == "ä" * 100_000


def test_what_the_kernel_refuses_to_run_is_the_same_error_and_leaves_no_process(
    group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    before = children_of(os.getpid())
    with pytest.raises(OSError, match="too long"):
        start_wrapper("true", "x" * 200_000, group=group, launcher=ready)
    with pytest.raises(ValueError, match="environment variable name"):
        start_wrapper("true", group=group, launcher=ready, environment={"a=b": "c"})
    assert children_of(os.getpid()) == before
    assert output_of(start_wrapper("echo", "well", group=group, launcher=ready)) == "well\n"
    assert len(ready.launched) == 1
