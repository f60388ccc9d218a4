"""X2: the lock of the writers ends with its holder, whoever it has forked."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from backburner.work.flock import is_held
from tests.waiting import wait_until

HOLDER = """
import os, signal, sys
from backburner.store.sqlite.writer import WriteLock
with WriteLock(sys.argv[1]):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
    signal.pause()
"""


def test_x2_a_forked_child_does_not_keep_the_lock_of_a_writer_that_is_dead(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        assert is_held(path)
        holder.kill()
        try:
            wait_until(lambda: not is_held(path), message="the child has it")
        finally:
            os.kill(child, signal.SIGKILL)
