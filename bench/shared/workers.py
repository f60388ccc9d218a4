"""Worker processes, ours and Procrastinate's: as many as a round needs, ended with the block."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

AT_ONCE = 64
"""Tasks of one worker, for both."""

_STARTS_WITHIN_S = 60.0
_LEAVES_WITHIN_S = 20.0
_NAP_S = 0.02


@contextlib.contextmanager
def our_workers(
    address: str, folder: Path, count: int, *, at_once: int = AT_ONCE, queue: str = "default"
) -> Generator[list[subprocess.Popen[bytes]]]:
    """`backburner worker`, each with a home of its own: so each is a machine."""
    commands: list[list[str]] = []
    for number in range(count):
        home = folder / f"machine-{queue}-{number}"
        commands.append(
            [sys.executable, "-m", "backburner.cli", "worker", "--home", str(home), "--queue",
             queue, "--concurrency", str(at_once), "--tools", "bench.shared.tools"]
        )  # fmt: skip
    settings = {"BACKBURNER_DATABASE": address}
    with _running(commands, folder, f"ours-{queue}", settings) as processes:
        yield processes


@contextlib.contextmanager
def their_workers(
    address: str, folder: Path, count: int, *, at_once: int = AT_ONCE
) -> Generator[list[subprocess.Popen[bytes]]]:
    """Procrastinate's own worker, as its documentation starts it from a program."""
    command = [sys.executable, "-m", "bench.shared.theirs", address, str(at_once)]
    with _running([command] * count, folder, "theirs", {}) as processes:
        yield processes


@contextlib.contextmanager
def _running(
    commands: list[list[str]], folder: Path, name: str, settings: dict[str, str]
) -> Generator[list[subprocess.Popen[bytes]]]:
    """Each has said that it is ready."""
    folder.mkdir(exist_ok=True)
    logs = [folder / f"{name}-{number}.log" for number in range(len(commands))]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as file:
                processes.append(
                    subprocess.Popen(
                        command,
                        env={**os.environ, **settings},
                        stdin=subprocess.DEVNULL,
                        stdout=file,
                        stderr=file,
                    )
                )
        deadline = time.monotonic() + _STARTS_WITHIN_S
        for process, log in zip(processes, logs, strict=True):
            while "takes on" not in log.read_text():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"a worker does not start: {log.read_text()}")
                time.sleep(_NAP_S)
        yield processes
    finally:
        _end(processes)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(_LEAVES_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
