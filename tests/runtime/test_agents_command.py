"""C4: agents that are programs run with the keeper, and outlive the application that asked."""

import sys
from pathlib import Path

import pytest

from backburner import Backburner, CommandAgent, ErrorKind, Kind, State, UsageError
from tests.faults.victims import unique_seconds

pytestmark = pytest.mark.slow  # short ones, each with processes

SH = ["sh", "-c"]


async def test_c4_the_prompt_is_the_last_word_and_the_output_the_answer(
    shared_home: Path, tmp_path: Path
) -> None:
    script = 'printf "%s in %s\\n\\n" "$1" "$PWD"; echo thinking >&2'
    async with Backburner.open(shared_home) as bb:
        bb.agent("echo", CommandAgent([*SH, script, "agent"], cwd=tmp_path))
        task = await bb.session("c4").ask("find it", agent="echo", title="Finding")
        assert task.record.kind is Kind.AGENT
        await task.wait(30)
        assert (task.state, task.exit_code, task.result) == (
            State.SUCCEEDED,
            0,
            f"find it in {tmp_path}",
        )
        assert task.record.title == "Finding"
        assert (await task.output()).stderr_text == "thinking\n"
        signals = [each for each in await bb.session("c4").told() if each.task == task.id]
        assert len(signals) == 1


async def test_c4_the_prompt_on_standard_input_may_be_of_any_length(shared_home: Path) -> None:
    prompt = "word " * 50_000
    async with Backburner.open(shared_home) as bb:
        bb.agent("count", CommandAgent(["wc", "-c"], prompt="stdin"))
        task = await bb.session("c4").ask(prompt, agent="count")
        await task.wait(30)
        assert (task.state, task.result) == (State.SUCCEEDED, "250000")
        assert len(task.record.title) == 60


async def test_c4_a_prompt_is_no_option_and_no_command(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("echo", CommandAgent(["printf", "%s|"]))
        for prompt in ("--help", "-n", f"$(touch {tmp_path}/x) `id` ; rm -rf *"):
            task = await bb.session("c4").ask(prompt, agent="echo")
            await task.wait(30)
            assert task.result == f"{' ' if prompt.startswith('-') else ''}{prompt}|"
        assert list(tmp_path.iterdir()) == []
        for prompt in ("a\0b", "x" * 130_000):
            with pytest.raises(UsageError, match=r"NUL|120 KiB"):
                await bb.session("c4").ask(prompt, agent="echo")


async def test_b6_a_program_that_fails_says_why(shared_home: Path) -> None:
    script = "echo some words; echo no credits left >&2; exit 3"
    async with Backburner.open(shared_home) as bb:
        bb.agent("poor", CommandAgent([*SH, script]))
        task = await bb.session("b6").ask("x", agent="poor")
        await task.wait(30)
        assert (task.state, task.exit_code, task.result) == (State.FAILED, 3, None)
        assert task.error is not None
        assert task.error.kind is ErrorKind.EXIT
        assert "no credits left" in task.error.message


async def test_b6_a_program_that_is_not_there_could_not_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("missing", CommandAgent(["/nowhere/claude", "-p"]))
        task = await bb.session("b6").ask("x", agent="missing")
        await task.wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN


async def test_c4_an_answer_outlives_the_application_that_asked(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("slow", CommandAgent([*SH, "sleep 0.3; echo late"]))
        task = await bb.session("c4-late").ask("x", agent="slow")
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("c4-late").task(task.id)
        await task.wait(30)
        assert task.result == "late"


async def test_c4_variables_are_given_and_secret_ones_are_not_on_record(shared_home: Path) -> None:
    agent = CommandAgent([*SH, "echo $TONE $API_KEY"], env={"TONE": "dry", "API_KEY": "hunter22"})
    async with Backburner.open(shared_home) as bb:
        bb.agent("toned", agent)
        task = await bb.session("c4").ask("x", agent="toned")
        await task.wait(30)
        assert task.result == "dry hunter22"
        assert "hunter22" not in str(task.record.spec)


async def test_c4_attached_files_are_named_to_a_program(shared_home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    async with Backburner.open(shared_home) as bb:
        bb.agent("echo", CommandAgent(["printf", "%s"]))
        session = bb.session("c4")
        task = await session.ask("read", agent="echo", attachments=[tmp_path / "notes.txt"])
        await task.wait(30)
        assert task.result == f"read\n\nAttached files:\n{tmp_path}/notes.txt"
        with pytest.raises(UsageError, match="by their paths"):
            await session.ask("read", agent="echo", attachments=[b"%PDF-1.7"])


async def test_d8_what_a_program_starts_is_in_its_own_session_and_ends_with_it(
    shared_home: Path,
) -> None:
    backburner = f"{Path(sys.executable).parent}/backburner"
    script = f"{backburner} run -- sleep {unique_seconds()}"
    async with Backburner.open(shared_home) as bb:
        bb.agent("starter", CommandAgent([*SH, script]))
        for keep in (False, True):
            task = await bb.session("d8").ask("x", agent="starter", keep_children=keep)
            await task.wait(60)
            assert task.state is State.SUCCEEDED, (await task.output()).text
            (child,) = await bb.session(task.id).tasks()
            assert child.id == task.result
            assert child.record.parent == task.id
            if keep:
                assert child.record.stop is None
                await child.stop(force=True)
            else:
                await child.wait(30)
            assert child.state is State.CANCELED


async def test_c3_a_program_is_stopped_with_all_its_processes(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.agent("stuck", CommandAgent([*SH, f"trap '' TERM; sleep {unique_seconds()}; true"]))
        task = await bb.session("c3").ask("x", agent="stuck")
        await task.stop(force=True)
        assert (task.state, task.record.leftovers) == (State.CANCELED, 0)
