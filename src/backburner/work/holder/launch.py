"""Starting a holder: the words before the command, and the socket that it will serve."""

import contextlib
import os
import socket
import sys
from collections.abc import Sequence

from backburner.model.home import AttemptFolder

_PACKAGE = os.path.abspath(f"{os.path.dirname(__file__)}/../..")
_BACKLOG = 64

# The package without its `__init__`, which loads `typing`: that would double the time of a start.
_PROGRAM = """\
import sys
package = type(sys)("backburner")
package.__path__ = [sys.argv[1]]
sys.modules["backburner"] = package
from backburner.work.holder.program import main
main(sys.argv[2:])
"""
_NAME = "backburner-holder"


def holder_words(kind: str, rows: int, columns: int) -> list[str]:
    """What stands before the command. OSError: the interpreter is gone."""
    if not os.access(sys.executable, os.X_OK):
        raise FileNotFoundError(2, "the Python that holds its input is gone", sys.executable)
    # -I and -S: neither the job's variables and folder nor site-packages concern the holder.
    python = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    return [*python, _PACKAGE, kind, str(rows), str(columns)]


def is_holder(words: Sequence[str]) -> bool:
    """Whether this is the command line of a holder, or of its child before it is the command."""
    return len(words) > 4 and words[4] == _PROGRAM  # noqa: PLR2004 - as above


def shown_holder(words: Sequence[str]) -> str:
    """A holder as a person wants to see it."""
    return f"{_NAME} {words[6]}"


def listen(folder: AttemptFolder) -> socket.socket:
    """The socket of a job's input, before its start: who connects meanwhile is served later."""
    at = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Through a descriptor: the path of a socket may have 107 bytes only.
        place = f"/proc/self/fd/{at}" if sys.platform == "linux" else folder.path
        listener.bind(f"{place}/input.new")
        os.chmod("input.new", 0o600, dir_fd=at)
        listener.listen(_BACKLOG)
        # In place only now: nobody finds a socket at which nobody listens.
        os.rename("input.new", "input", src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink("input.new", dir_fd=at)
        raise
    finally:
        os.close(at)
    return listener
