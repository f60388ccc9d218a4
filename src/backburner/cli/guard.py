"""Errors for people: one line, a hint, an exit status. Never a traceback, unless asked for.

What was not expected is written to `error.log` in the home, for whoever has to find out.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, cast

from backburner.cli import exits
from backburner.cli.textwidth import clean
from backburner.model.database import hide_passwords
from backburner.model.errors import SPELLINGS, BackburnerError

_LOG_LIMIT = 1024 * 1024
"""The file of errors begins anew above this size."""

_home: Path | None = None


def details_belong_to(home: Path) -> None:
    """From now on, details of unexpected errors go to this home, if it exists."""
    global _home  # noqa: PLW0603 - one program, one home; the guard stands outside every command
    _home = home


def guarded(work: Callable[[], int]) -> int:
    """Do the work of the program. Answers its exit status, whatever happens."""
    sys.stdout = _usable(sys.stdout)
    sys.stderr = _usable(sys.stderr)
    try:
        status = work()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        _write_to_nowhere()
        return exits.BROKEN_PIPE
    except BackburnerError as error:
        tell(error)
        return SPELLINGS[error.code].exit_status
    except OSError as error:
        _show_if_asked_for(error)
        _write_to_nowhere()  # a full disk would complain again when Python ends
        name = f": {error.filename}" if error.filename else ""
        _line(f"backburner: {error.strerror or error}{name}")
        _line("hint: run: backburner doctor")
        return exits.FAILED
    except Exception as error:  # noqa: BLE001 - the last net below everything
        _line(f"backburner: internal error: {type(error).__name__}: {error}")
        _line(f"hint: {_keep_details(error)}")
        return exits.FAILED
    finally:
        _lose_messages()


def _usable(stream: TextIO | None) -> TextIO:
    """A stream that takes everything: one that was closed by the caller, any character."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        cast("io.TextIOWrapper[io.BufferedWriter]", stream).reconfigure(errors="replace")
    return cast("TextIO", stream)


def tell(error: BackburnerError) -> None:
    """An error in two lines on standard error."""
    _line(f"backburner: {error.message}")
    if error.remedy:
        _line(f"hint: {error.remedy}")


def _line(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody is there to be told
        print(clean(hide_passwords(text, sys.argv)), file=sys.stderr)


def _lose_messages() -> None:
    """Those that could not be written: Python would try again at its end, and change our status."""
    try:
        sys.stderr.flush()
    except OSError:
        _write_to_nowhere(sys.stderr)


def _write_to_nowhere(stream: TextIO | None = None) -> None:
    """Whatever is still to be written: nobody reads it, and Python would complain at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (stream or sys.stdout).fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass


def _show_if_asked_for(error: BaseException) -> bool:
    if not os.environ.get("BACKBURNER_DEBUG"):
        return False
    import traceback

    traceback.print_exception(error)
    return True


def _keep_details(error: BaseException) -> str:
    """Write the details down; answers where they are."""
    if _show_if_asked_for(error):
        return "the details are above"
    if _home is not None and _home.is_dir():
        import traceback

        from backburner.model import clock

        path = _home / "error.log"
        command = " ".join(sys.argv[1:2])  # no more: a command line can hold secrets
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with open(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
                if file.tell() > _LOG_LIMIT:
                    file.truncate(0)
                file.write(f"{clock.rfc3339(clock.now())} backburner {command}\n")
                traceback.print_exception(error, file=file)
        except OSError:
            pass
        else:
            return f"the details are in {path}"
    return "set BACKBURNER_DEBUG=1 to see the details"
