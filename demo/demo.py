"""The main job, for real: jobs that flood, daemonise, fail and take their time, and a keeper that
is killed in the middle; then a server that gets ready, a script that asks, a queue, a tool call
that outlives its time, and a schedule; at last the dashboard. Everything happens in a temporary
home; nothing is left afterwards.

Run it with `make demo`. It fails, with exit status 1, when a promise was not kept.
"""

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from backburner import Context
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

EXPECTED: dict[str, tuple[str, int | None]] = {
    "flood": ("succeeded", 0),
    "daemon": ("succeeded", 0),
    "failing": ("failed", 2),
    "slow": ("succeeded", 0),
    "endless": ("canceled", None),
    "missing": ("failed", 127),
}


ASKING = """\
backburner progress 1 3 --label tests
stage=$(backburner ask 'Deploy to which stage?')
backburner progress 2 3 --label "deploying to $stage"
backburner result "{\\"stage\\": \\"$stage\\"}"
backburner progress 3 3
"""


def say(text: str) -> None:
    """A line of the story."""
    strong = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(f"\n\033[1m▸ {text}\033[0m" if strong else f"\n▸ {text}", flush=True)


def command(*arguments: str) -> None:
    """What a person would type, and what it shows."""
    print(f"$ backburner {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "backburner.cli", *arguments], check=False)


def started(*arguments: str) -> str:
    """The id that a start prints."""
    print(f"$ backburner {shlex.join(arguments)}", flush=True)
    program = [sys.executable, "-m", "backburner.cli", *arguments]
    answer = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    print(answer)
    return answer


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        # So that the scripts find `backburner`.
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        yield Path(name)


def kill_keeper(home: Path) -> None:
    """kill -9, as an out-of-memory killer or an impatient person would."""
    pid = keeper_pid(Home(home))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: keeper_pid(Home(home)) not in (None, pid))
    print(f"keeper {pid} is dead; its guardian started keeper {keeper_pid(Home(home))}")


def check(
    session: Session, tasks: dict[str, Task], expected: dict[str, tuple[str, int | None]]
) -> list[str]:
    """What went wrong, if anything did."""
    wrong: list[str] = []
    for name, task in tasks.items():
        ended = (task.refresh().state.value, task.exit_code)
        if ended != expected[name]:
            wrong.append(f"{name} ended as {ended}, expected {expected[name]}")
    told = [signal.task for signal in session.told() if signal.key.endswith(":end")]
    for name, task in tasks.items():
        if told.count(task.id) != 1:
            wrong.append(f"the session was told {told.count(task.id)} times of {name}")
    return wrong


def server_gets_ready(session: Session) -> Task:
    """Started is not ready."""
    port = str(free_port())
    say("A server takes a second to come up. Whoever needs it waits for ready, not for started.")
    slow = f"sleep 1; exec {sys.executable} -m http.server --bind 127.0.0.1 {port}"
    server = session.task(started("run", "--title", "server", "--ready-port", port, "--", slow))
    command("wait", "--for", "ready", server.id)
    command("stop", server.id)
    return server


def script_asks(session: Session) -> Task:
    """A question, its answer, and a result."""
    say("A script reports how far it is, and asks. Nobody has to watch it: the session is told.")
    script = session.task(started("run", "--title", "deploy", "--", ASKING))
    until(lambda: script.refresh().state.value == "input_required")
    command("ls")
    command("send", script.id, "staging")
    script.wait(30)
    print(f"  result: {script.result}")
    return script


def queue_of_two(session: Session) -> list[Task]:
    """Five jobs, two at a time."""
    say("Five builds in a queue of width two.")
    command("queue", "set", "builds", "--width", "2")
    line = "sleep 1; echo built"
    builds = [session.run(line, title=f"build {number}", queue="builds") for number in range(1, 6)]
    until(lambda: builds[1].refresh().record.started_at is not None)
    command("ls")
    for build in builds:
        build.wait(60)
    return builds


def call_is_parked(bb: Backburner, session: Session) -> Task:
    """A tool takes longer than its caller has time, and asks."""

    @bb.tool(background=True)
    async def translate(context: Context, pages: int) -> str:
        """Translate a book."""
        for page in range(1, pages + 1):
            context.progress(page, pages, unit="pages")
            await asyncio.sleep(0.4)
        style = await context.ask("Formal or friendly?")
        return f"{pages} pages, {style}"

    say("An agent calls a tool, and has half a second for it. The call is parked, never cut off.")
    called = session.invoke("translate", {"pages": 4}, budget=0.5)
    for name, value in called.document().items():
        print(f"  {name}: {value}")
    task: Task = called.task
    until(lambda: task.refresh().state.value == "input_required")
    command("send", task.id, "friendly")
    print(f"  result: {task.wait(30).result}")
    return task


def schedule_fires(session: Session) -> Task:
    """By the clock, and by the keeper: no application has to be there."""
    say("A schedule starts a job by the clock.")
    started("schedule", "add", "--at", "+2s", "--title", "report", "--", "echo the report is out")
    (schedule,) = session.schedules()
    until(lambda: schedule.refresh().record.last_task is not None)
    assert schedule.record.last_task is not None
    task = session.task(schedule.record.last_task).wait(30)
    print(f"  {task.output().text.strip()}")
    command("schedule", "ls", "--all")
    return task


def shown_in_a_browser(session: Session) -> bool:
    """The dashboard, while somebody looks at it; whether it answered."""
    say("All of it in a browser: what runs, what failed and why. There is a job to stop.")
    session.run("while :; do date; sleep 1; done", title="stop me")
    serve = [sys.executable, "-m", "backburner.cli", "serve", "--port", "0", "--json"]
    with subprocess.Popen([*serve, "--log-level", "error"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            said = json.loads(server.stdout.readline())
            with urllib.request.urlopen(said["url"], timeout=30) as page:
                answered = b'<div id="app">' in page.read()
            print(f"  the dashboard:            {said['url']}")
            print(f"  a link that logs in once: {said['login']}", flush=True)
            if sys.stdin.isatty() and sys.stdout.isatty():
                input("  Enter ends the demo, and everything of it. ")
            else:
                print("  There is no terminal to wait at, so it ends now. To look around, run it")
                print("  in one, or start a dashboard of your own: backburner serve")
            return answered
        finally:
            server.terminate()


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

        ended: dict[str, tuple[str, int | None]] = {
            "server": ("canceled", None),
            "deploy": ("succeeded", 0),
            "translate": ("succeeded", None),
            "report": ("succeeded", 0),
        }
        tasks["server"] = server_gets_ready(session)
        tasks["deploy"] = script_asks(session)
        for number, build in enumerate(queue_of_two(session), start=1):
            tasks[f"build {number}"] = build
            ended[f"build {number}"] = ("succeeded", 0)
        tasks["translate"] = call_is_parked(bb, session)
        tasks["report"] = schedule_fires(session)

        say("How each one ended:")
        command("ls")
        say("What the session is told, each exactly once:")
        command("signals")

        wrong = check(session, tasks, EXPECTED | ended)
        say("Every job ended as it should, and was told once." if not wrong else "NOT KEPT:")
        for line in wrong:
            print(f"  {line}")
        return 0 if shown_in_a_browser(session) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
