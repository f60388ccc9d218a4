"""What a script does inside a job, in full: its commands, in a job and outside of one."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any, NoReturn, cast

from backburner.cli import exits, inside, say, terminal
from backburner.model.clock import parse_duration
from backburner.model.errors import LimitReached, StoreFull, UsageError
from backburner.model.home import AttemptFolder, resolve_home
from backburner.model.limits import QUESTION_MAX_CHARS, RESULT_MAX_BYTES, Settings
from backburner.model.values import value
from backburner.work.reporting import append, report_path


@value
class Place:
    """Where the script runs: in a job, which may have to be one of a certain home and session."""

    home: str | None = None
    session: str | None = None
    as_json: bool = False

    @property
    def folder(self) -> AttemptFolder | None:
        """The folder of the job; None outside of one."""
        path = report_path()
        if path is None:
            return None
        if self.home is not None:
            ours = os.path.realpath(resolve_home(self.home))
            if not os.path.realpath(path).startswith(f"{ours}/"):
                return None
        if self.session is not None and self.session != os.environ.get("BACKBURNER_SESSION"):
            return None
        return AttemptFolder(os.path.dirname(path))


def try_plain(argv: list[str]) -> int | None:
    """Carry out a plain `ask` or `artifact`; None where typer has to look at it."""
    command, *words = argv
    option = {"ask": "--timeout", "artifact": "--name"}[command]
    given: str | None = None
    if words[:1] == [option]:
        given = words[1] if words[1:] else ""
        words = words[2:]
    if len(words) != 1 or words[0].startswith("-") or given == "":
        return None
    if command == "artifact":
        return artifact(Place(), words[0], given)
    try:
        timeout_s = None if given is None else parse_duration(given)
    except ValueError:
        return None
    return ask(Place(), words[0], timeout_s)


def report(place: Place, key: str, value: Any, shown: str) -> int:
    """Report something. Outside of a job, say it instead."""
    folder = place.folder
    if folder is None:
        sys.stderr.write(inside.outside(key, shown))
    else:
        with _room_for_it():
            append(folder.report, key, json.dumps(value, allow_nan=False))
    if place.as_json:
        say.document({key: value, "in_job": folder is not None})
    return exits.DONE


def status(place: Place, text: str) -> int:
    """What it is doing."""
    if not text.strip():
        raise UsageError("the status is empty", remedy="say what the script is doing")
    return report(place, "status", text[:4000], text)


def progress(
    place: Place, current: str, total: str | None, unit: str | None, label: str | None
) -> int:
    """How far it is."""
    value: dict[str, Any] = {"current": _amount(current, "CURRENT")}
    if total is not None:
        value["total"] = _amount(total, "TOTAL")
        if not value["total"]:
            raise UsageError("TOTAL: 0 is not above 0", remedy="leave it out if it is not known")
    value |= {name: text for name, text in (("unit", unit), ("label", label)) if text}
    return report(place, "progress", value, " ".join(filter(None, (current, total, unit, label))))


def _amount(text: str, name: str) -> int | float:
    try:
        number = int(text) if text.strip("+").isdigit() else float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1e15:  # noqa: PLR2004 - up to here a float counts every unit; nan is not
        raise UsageError(
            f"{name}: {text!r} is no number of 0 or more", remedy="write for example: progress 3 10"
        )
    return number


def result(place: Place, text: str) -> int:
    """Its result; `-` reads it from standard input."""
    if text == "-":
        text = _standard_input(RESULT_MAX_BYTES, "the result")

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
        document = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"the result is no JSON: {error}",
            remedy="quote it for the shell, a text twice: '{\"passed\": 42}', '\"a text\"'",
        ) from None
    if len(document) > RESULT_MAX_BYTES:
        raise _too_long("the result")
    return report(place, "result", value, text)


def _standard_input(limit: int, name: str) -> str:
    data = sys.stdin.buffer.read(limit + 1) if sys.stdin is not None else b""
    if len(data) > limit:
        raise _too_long(name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no UTF-8") from None


def _too_long(name: str) -> LimitReached:
    return LimitReached(
        f"{name} is longer than {RESULT_MAX_BYTES // 1024} KiB",
        remedy="put it into a file and add that with: backburner artifact FILE",
    )


def artifact(place: Place, path: str, name: str | None) -> int:
    """A file to keep with the task."""
    from backburner.work import artifacts

    try:
        limits = Settings.from_environment()
    except ValueError as error:
        raise UsageError(str(error)) from None
    folder = place.folder
    if folder is None:
        artifacts.check(path, limits)
        return report(place, "artifact", path, path)
    with _room_for_it():
        added = artifacts.add(folder, path, name, limits)
        append(folder.report, "artifact", json.dumps(added.name))
    if place.as_json:
        say.document({"name": added.name, "bytes": added.bytes, "path": added.path})
    return exits.DONE


def tell(place: Place, text: str) -> int:
    """Something that its session should know now."""
    if not text.strip():
        raise UsageError("there is nothing to tell", remedy="say what the session should know")
    if len(text) > QUESTION_MAX_CHARS:
        raise UsageError(
            f"what is told is longer than {QUESTION_MAX_CHARS} characters",
            remedy="put it into a file, and add that as an artifact",
        )
    return report(place, "tell", text, text)


def ask(
    place: Place, question: str, timeout_s: float | None, schema: dict[str, Any] | None = None
) -> int:
    """Wait for an answer and print it."""
    from backburner.work import asking

    if schema is not None:
        from backburner.work.fitting import check_schema  # slow to load, seldom needed

        check_schema(schema)
    if not question.strip():
        raise UsageError("the question is empty")
    if len(question) > QUESTION_MAX_CHARS:
        raise UsageError(
            f"the question is longer than {QUESTION_MAX_CHARS} characters",
            remedy="put what it is about into a file, and add that as an artifact",
        )
    folder = place.folder
    if folder is None:
        answer = _ask_here(question, schema)
    else:
        with _ended_by_signals(), _room_for_it():
            answer = asking.ask(folder, question, timeout_s, schema)
    if place.as_json:
        say.document({"question": question, "answer": answer})
    else:
        say.at_once(answer if answer.endswith("\n") else f"{answer}\n")
    return exits.DONE


def read_schema(text: str) -> dict[str, Any]:
    """A JSON schema as it is given on a command line."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"--schema: that is no JSON: {error}",
            remedy='write for example: --schema \'{"enum": ["main", "dev"]}\'',
        ) from None
    if not isinstance(schema, dict):
        raise UsageError("--schema: a schema is an object", remedy='such as {"type": "integer"}')
    return cast("dict[str, Any]", schema)


def _ask_here(question: str, schema: dict[str, Any] | None) -> str:
    if not terminal.is_terminal(sys.stdin):
        raise UsageError(
            "nobody can be asked: this is neither a job nor a terminal",
            remedy="start the script with: backburner run -- …",
        )
    sys.stderr.write(f"{question} ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise KeyboardInterrupt  # Ctrl-D: no answer
    if schema is not None:
        from backburner.work.fitting import value_of

        value_of(answer, schema)
    return answer.removesuffix("\n")


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None]:
    """A polite signal ends the waiting as Ctrl-C does, so that the question is withdrawn."""

    def end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - as Python calls it
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    yield


@contextlib.contextmanager
def _room_for_it() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFull(
            f"it could not be reported: {error.strerror or error}",
            remedy="free some space, and see: backburner doctor",
        ) from error
