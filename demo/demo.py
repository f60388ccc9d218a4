"""The main job, for real: jobs that flood, daemonise, fail and take their time, and a keeper that
is killed in the middle. Everything happens in a temporary home; nothing is left afterwards.

Run it with `make demo`. It fails, with exit status 1, when a promise was not kept.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from backburner.model.home import Home
from backburner.runtime.election import keeper_pid
from backburner.sync import Backburner, Session, Task

DAEMON = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(600)"

JOBS = {
    "flood": "yes 'the same line, over and over' | head -c 3000000000; echo; echo the last line",
    "daemon": f'env -i "{sys.executable}" -c "{DAEMON}"; echo the daemon is off',
    "failing": "echo compiling; echo 'main.c:3: expected ;' >&2; exit 2",
    "slow": "for i in 1 2 3 4 5 6; do echo step $i of 6; sleep 1; done; echo built",
    "endless": "trap '' TERM; echo ignores TERM; while :; do sleep 1; done",
    "missing": "no-such-program --at-all",
}

EXPECTED = {
    "flood": ("succeeded", 0),
    "daemon": ("succeeded", 0),
    "failing": ("failed", 2),
    "slow": ("succeeded", 0),
    "endless": ("canceled", None),
    "missing": ("failed", 127),
}


def say(text: str) -> None:
    """A line of the story."""
    strong = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(f"\n\033[1m▸ {text}\033[0m" if strong else f"\n▸ {text}", flush=True)


def command(*arguments: str) -> None:
    """What a person would type, and what it shows."""
    print(f"$ backburner {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "backburner.cli", *arguments], check=False)


def until(condition: object, timeout_s: float = 30) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("the demo waited too long")
        time.sleep(0.02)


@contextmanager
def temporary_home() -> Generator[Path]:
    """A home of our own; its keeper leaves when it vanishes."""
    with tempfile.TemporaryDirectory(prefix="backburner-demo-", ignore_cleanup_errors=True) as name:
        os.environ["BACKBURNER_HOME"] = name
        os.environ["BACKBURNER_SESSION"] = "demo"
        yield Path(name)


def kill_keeper(home: Path) -> None:
    """kill -9, as an out-of-memory killer or an impatient person would."""
    pid = keeper_pid(Home(home))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: keeper_pid(Home(home)) not in (None, pid))
    print(f"keeper {pid} is dead; its guardian started keeper {keeper_pid(Home(home))}")


def check(session: Session, tasks: dict[str, Task]) -> list[str]:
    """What went wrong, if anything did."""
    wrong: list[str] = []
    for name, task in tasks.items():
        ended = (task.refresh().state.value, task.exit_code)
        if ended != EXPECTED[name]:
            wrong.append(f"{name} ended as {ended}, expected {EXPECTED[name]}")
    told = [signal.task for signal in session.told()]
    for name, task in tasks.items():
        if told.count(task.id) != 1:
            wrong.append(f"the session was told {told.count(task.id)} times of {name}")
    return wrong


def main() -> int:
    """The story."""
    with temporary_home() as home, Backburner.open() as bb:
        session = bb.session("demo")

        say("Six jobs go to the background. Each start returns when the job is on disk.")
        tasks: dict[str, Task] = {}
        for name, line in JOBS.items():
            began = time.perf_counter()
            tasks[name] = session.run(line, title=name)
            took = (time.perf_counter() - began) * 1000
            print(f"  {tasks[name].id}  {name:8} {took:5.1f} ms   {line[:60]}")
        until(lambda: all(task.refresh().record.started_at for task in tasks.values()))

        say("The keeper, which looks after them, is killed with -9 in the middle.")
        kill_keeper(home)
        command("ls")

        say("The jobs did not notice. One ignores TERM: it is stopped all the same.")
        command("stop", tasks["endless"].id, "--grace", "1s")

        say("Waiting for the others, without polling.")
        for name, task in tasks.items():
            print(f"  {name:8} {task.wait(120).state.value}")

        say("The flood printed 3 GB. What is kept of it, and what it costs on disk:")
        log = Path(tasks["flood"].document()["paths"]["log"])
        output = tasks["flood"].document()["output"]
        print(f"  {output['bytes']:,} bytes written, {output['dropped_bytes']:,} dropped,")
        print(f"  {log.stat().st_blocks * 512:,} bytes on disk; it ends with:")
        print(f"  {tasks['flood'].output(last_lines=1).text.strip()}")

        say("The daemon left a process behind, in a session of its own and without environment.")
        print(f"  left behind: {tasks['daemon'].record.leftovers}")
        print(f"  after stop:  {tasks['daemon'].stop(grace=1).record.leftovers}")

        say("How each one ended:")
        command("ls")
        say("What the session is told, each exactly once:")
        command("signals")

        wrong = check(session, tasks)
        say("Every job ended as it should, and was told once." if not wrong else "NOT KEPT:")
        for line in wrong:
            print(f"  {line}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
