"""The shell that stands before each job, and what its files say.

One line of shell is all that runs between us and the job: it joins the cgroup, where it was not
born in it (`launcher`), notes that it lives, runs the command and writes the exit code. It costs
3 ms where a Python supervisor costs 17 to 42.

What it leaves behind is read by `condition`.
"""

import contextlib
import fcntl
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache, partial

from backburner.model.home import AttemptFolder
from backburner.model.input import Input
from backburner.model.values import value
from backburner.work.holder.frames import SOCKET_FD
from backburner.work.holder.launch import holder_words, is_holder, listen
from backburner.work.process.condition import BLANK
from backburner.work.process.identity import read_proc
from backburner.work.process.launcher import Launcher, NotLaunched, is_launcher
from backburner.work.process.mark import Mark, marking_children

_SCRIPT = """\
trap : TERM INT HUP QUIT USR1 USR2 ALRM PIPE
exec 5>&2 2>&3
if [ -n "$4" ]; then echo 0 >"$4"; fi 2>/dev/null
read -r go <&6 || exit
echo "$$" >&3
umask "$1"; ulimit -Sn "$2" 2>/dev/null; cd -- "$3" || exit
shift 4
exec 6<&-
( exec "$@" 2>&5 3>&- 5>&- )
echo "exit $?." >&3
"""
# trap `:` and not ignore: the command starts with the default action, the wrapper outlives it.
# It waits for a line on descriptor 6: the word that the start is on disk. A keeper that dies before
# it could say so closes the pipe, and the command is certainly not run.
# The wrapper's own standard error goes to its file: a shell says there that a command was killed
# by a signal, which the exit code alone cannot tell from `exit 137`.

_NAME = "backburner-job"

_ABOVE_TARGETS = 10
"""Descriptors from here on stand where none of a wrapper is to be."""

_DEFAULT_SIGNALS = [
    number
    for number in signal.Signals
    if number not in (signal.SIGKILL, signal.SIGSTOP) and number < signal.SIGRTMIN
]


@value
class Launch:
    """How a command is to be run: what it inherits from its caller."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    umask: int
    open_files: int
    """The soft limit of open files; the keeper has raised its own."""
    separate_stderr: bool = False
    input: str = Input.NONE.value
    size: Sequence[int] = field(default_factory=lambda: [24, 80])
    """Rows and columns of its terminal."""
    stdin_text: str | None = None
    """What it reads from its standard input before that is at its end, where it has no `input`."""
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the environment, what was set for this start. The rest is the caller's own."""


def problem(launch: Launch) -> str | None:
    """Why this cannot be started, if that can be known before."""
    if not os.path.isdir(launch.cwd):
        return f"there is no folder {launch.cwd}"
    if not os.access(launch.cwd, os.X_OK):
        return f"the folder {launch.cwd} may not be entered"
    program = launch.argv[0]
    if os.path.dirname(program):
        path = os.path.join(launch.cwd, program)
        if _is_executable(path):
            return None
        there = os.path.exists(path)
        return f"{program} may not be executed" if there else f"there is no program {program}"
    folders = launch.environment.get("PATH", os.defpath).split(os.pathsep)
    if not any(_is_executable(os.path.join(launch.cwd, folder, program)) for folder in folders):
        return f"command not found: {program}"
    return None


def _is_executable(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)


def _shell_for(environment: Mapping[str, str]) -> list[str]:
    # dash drops variables whose names are no identifiers (npm has such); bash hands them on. -p:
    # the caller's BASH_ENV, functions and options are for the command, and not for the wrapper.
    if all(map(str.isidentifier, environment)) and all(map(str.isascii, environment)):
        return ["/bin/sh"]
    bash = find_bash()
    return ["/bin/sh"] if bash is None else [bash, "-p"]


@cache
def find_bash() -> str | None:
    """Where bash is, if there is one."""
    return shutil.which("bash")


class Started:
    """A wrapper that waits for the word to run its command."""

    def __init__(self, pid: int, word: int) -> None:
        self.pid = pid
        self._word = word

    def go(self) -> None:
        """The start is on disk: run."""
        with contextlib.suppress(BrokenPipeError):  # it was killed while it waited
            os.write(self._word, b"\n")
        os.close(self._word)

    def give_up(self) -> None:
        """Somebody else has the task: the wrapper ends without a trace."""
        os.close(self._word)
        os.waitpid(self.pid, 0)


Spawn = Callable[[str, list[str], Mapping[str, str], Mapping[int, int]], int]
"""Runs a program with words, an environment and descriptors: for each of its own, which of ours."""


def start(
    folder: AttemptFolder,
    launch: Launch,
    *,
    mark: Mark,
    cgroup: str | None,
    launcher: Launcher | None = None,
) -> Started:
    """Start the wrapper in a session of its own; OSError where that cannot be."""
    if launcher is not None and cgroup is not None and launcher.takes_next():
        with contextlib.suppress(NotLaunched):
            spawn = partial(launcher.spawn, mark=mark, group=cgroup)
            return _start(folder, launch, spawn, joins="")
    joins = f"{cgroup}/cgroup.procs" if cgroup else ""
    return _start(folder, launch, partial(_spawn, mark=mark), joins=joins)


def _start(folder: AttemptFolder, launch: Launch, spawn: Spawn, *, joins: str) -> Started:
    """With files of its own: one that was left without the word holds others."""
    with contextlib.ExitStack() as stack:
        _make_empty(folder.path)
        # Before the other files: who finds those and no socket knows that there will be none.
        words, sockets = _holding(folder, launch, stack)

        def opened(path: str, flags: int) -> int:
            fd = os.open(path, flags | os.O_CREAT, 0o600)
            stack.callback(os.close, fd)
            return fd

        log = opened(folder.log, os.O_WRONLY | os.O_APPEND)
        errors = opened(folder.stderr, os.O_WRONLY | os.O_APPEND) if launch.separate_stderr else log
        wrapper = opened(folder.wrapper, os.O_RDWR)
        os.pwrite(wrapper, BLANK, 0)
        fcntl.flock(wrapper, fcntl.LOCK_EX)
        reads = _standard_input(launch, stack)
        shell, *options = _shell_for(launch.environment)
        line, word = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, line)
        try:
            pid = spawn(
                shell,
                [_NAME, *options, "-c", _SCRIPT, _NAME,
                 f"{launch.umask:04o}", str(launch.open_files), launch.cwd, joins,
                 *words, *launch.argv],
                launch.environment,
                {0: reads, 1: log, 2: errors, 3: wrapper, 6: line, **sockets},
            )  # fmt: skip
        except BaseException:
            os.close(word)
            raise
        return Started(pid, word)


def _spawn(
    program: str,
    argv: list[str],
    environment: Mapping[str, str],
    descriptors: Mapping[int, int],
    *,
    mark: Mark,
) -> int:
    with contextlib.ExitStack() as stack:

        def out_of_the_way(fd: int) -> int:
            if fd >= _ABOVE_TARGETS:
                return fd
            moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE_TARGETS)
            stack.callback(os.close, moved)
            return moved

        # A worker without a standard input and output has low ones for something else.
        sources = {theirs: out_of_the_way(ours) for theirs, ours in descriptors.items()}
        stack.enter_context(marking_children(mark))
        return os.posix_spawn(
            program,
            argv,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in sources.items()],
            setsid=True,
            setsigmask=[],
            setsigdef=_DEFAULT_SIGNALS,
        )


def _standard_input(launch: Launch, stack: contextlib.ExitStack) -> int:
    """Nothing, or a text that lies in memory only: no file of it is left when the job has ended."""
    if launch.stdin_text is None:
        fd = os.open(os.devnull, os.O_RDONLY)
        stack.callback(os.close, fd)
        return fd
    fd = os.memfd_create("backburner-input")
    stack.callback(os.close, fd)
    with open(fd, "wb", closefd=False) as file:
        file.write(launch.stdin_text.encode(errors="surrogatepass"))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _holding(
    folder: AttemptFolder, launch: Launch, stack: contextlib.ExitStack
) -> tuple[list[str], dict[int, int]]:
    """What stands before a command with input, and the socket that goes with it."""
    if launch.input == Input.NONE:
        return [], {}
    listener = stack.enter_context(listen(folder))
    return holder_words(launch.input, *launch.size), {SOCKET_FD: listener.fileno()}


def is_wrapper(pid: int) -> bool:
    """Whether it is a wrapper or holder, or has yet to become one or the command of one."""
    words = read_proc(pid, "cmdline").decode(errors="replace").split("\0", 5)
    # Without a word it is in the middle of its exec: whoever spawns goes on before that is over.
    return words[0] in ("", _NAME) or is_holder(words) or is_launcher(words)


def _make_empty(path: str) -> None:
    """The folder of an attempt. One that is there is of a start that was never on disk."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        shutil.rmtree(path)
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.mkdir(path, 0o700)
