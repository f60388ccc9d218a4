"""A process with the modules of our programs loaded; each program is a fork of it.

Started by `nursery.py`, with a socket on which requests come, and one for those of `forked.py`;
ends when the first is closed.
"""

import ctypes
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys

_DESCRIPTORS = 5
_SET_DEATH_SIGNAL = 1


def main(requests: socket.socket, door: socket.socket) -> str:
    """Until nobody asks any more. Returns in each fork, with the module that it is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody collects those that wait for a run
    while True:
        if requests in select.select([requests, door], [], [])[0]:
            asked, descriptors, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS)
            if not asked:
                os._exit(0)
        else:
            with door.accept()[0] as stranger:
                _, descriptors, _, _ = socket.recv_fds(stranger, 1, _DESCRIPTORS)
        if os.fork() == 0:
            requests.close()
            door.close()
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *standard, request, status = descriptors
    with open(request, "rb") as file:
        given = json.load(file)
    if (pid := os.fork()) != 0:
        for descriptor in standard:
            os.close(descriptor)
        _stand_in_its_home(given)
        os.write(status, f"{pid}\n".encode())
        _, ended = os.waitpid(pid, 0)
        os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
        os._exit(0)
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)  # it goes with who waits for it
    os.close(status)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return _become(given)


def _stand_in_its_home(given: dict[str, "list[str] | dict[str, str] | str | int"]) -> None:
    """So that `leftovers.py` finds the program, of which /proc has not the right environment."""
    home = dict(given["environment"]).get("BACKBURNER_HOME", "")  # type: ignore[arg-type]
    for word in map(str, (home, *list(given["arguments"]))):  # type: ignore[arg-type]
        if os.path.isdir(word):
            os.chdir(word)
            return


def _become(given: dict[str, "list[str] | dict[str, str] | str | int"]) -> str:
    """What `execve` would do, and `python -m`."""
    os.chdir(str(given["cwd"]))
    os.umask(int(str(given["umask"])))
    os.environ.clear()
    os.environ.update(dict(given["environment"]))  # type: ignore[arg-type]
    sys.path[0] = os.getcwd()
    sys.argv = ["-m", *list(given["arguments"])]  # type: ignore[arg-type]
    return str(given["module"])


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # beside this file there is a folder `mcp`
    for name in sys.argv[3:]:
        importlib.import_module(name)
    module = main(*(socket.socket(fileno=int(word)) for word in sys.argv[1:3]))
    runpy.run_module(module, run_name="__main__", alter_sys=True)
