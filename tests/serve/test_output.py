"""What a task has written, and the files it has added."""

import os
from pathlib import Path

from backburner.model.home import AttemptFolder
from backburner.model.task import Task
from tests.serve.client import SPEC, Api, is_problem


async def wrote(
    api: Api, data: bytes, *, stderr: bytes | None = None
) -> tuple[Task, AttemptFolder]:
    """A task that has ended and written this."""
    spec = {**SPEC, "separate_stderr": stderr is not None}
    task = await api.ended_task(spec=spec)
    folder = api.backburner.home.attempt(task.id, 1)
    Path(folder.path).mkdir(parents=True)
    Path(folder.log).write_bytes(data)
    if stderr is not None:
        Path(folder.stderr).write_bytes(stderr)
    return task, folder


async def test_output_by_cursor_gives_what_is_new(api: Api) -> None:
    task, folder = await wrote(api, b"one\n")
    path = f"/v1/tasks/{task.id}/output"
    first = await api.json(path)
    assert (first["text"], first["total"], first["complete"]) == ("one\n", 4, True)
    with open(folder.log, "ab") as log:
        log.write(b"\x1b[31mtwo\x1b[0m\nthree\n")
    assert (await api.json(path, params={"since": first["cursor"]}))["text"] == "two\nthree\n"
    assert "\x1b[31m" in (await api.json(path, params={"raw": "true"}))["text"]
    assert (await api.json(path, params={"grep": "^t"}))["text"] == "two\nthree\n"
    assert (await api.json(path, params={"last": 1}))["text"] == "three\n"
    assert is_problem(await api.get(path, params={"since": "nix"}), 422, "usage")
    assert is_problem(await api.get(path, params={"grep": "("}), 422, "usage")


async def test_standard_error_is_told_apart(api: Api) -> None:
    task, _ = await wrote(api, b"out\n", stderr=b"err\n")
    both = await api.json(f"/v1/tasks/{task.id}/output")
    assert (both["text"], both["stderr"]) == ("out\n", "err\n")
    log = await api.get(f"/v1/tasks/{task.id}/log", params={"stream": "stderr"})
    assert log.content == b"err\n"


RANGES = {
    "bytes=0-3": (b"0123", "bytes 0-3/10"),
    "bytes=8-": (b"89", "bytes 8-9/10"),
    "bytes=-3": (b"789", "bytes 7-9/10"),
    "bytes=-99": (b"0123456789", "bytes 0-9/10"),
    "bytes=5-99": (b"56789", "bytes 5-9/10"),
}


async def test_a_range_of_bytes(api: Api) -> None:
    task, _ = await wrote(api, b"0123456789")
    for asked, (content, said) in RANGES.items():
        answer = await api.get(f"/v1/tasks/{task.id}/log", headers={"Range": asked})
        assert (answer.status_code, answer.content) == (206, content), asked
        assert answer.headers["content-range"] == said


async def test_what_is_no_range_is_ignored(api: Api) -> None:
    task, _ = await wrote(api, b"0123456789")
    for asked in ("bytes=3-1", "lines=1-2", "bytes=1-2,4-5", "bytes=x", ""):
        answer = await api.get(f"/v1/tasks/{task.id}/log", headers={"Range": asked})
        assert (answer.status_code, answer.content) == (200, b"0123456789"), asked


async def test_a_range_beyond_the_end_is_refused(api: Api) -> None:
    task, _ = await wrote(api, b"0123456789")
    answer = await api.get(f"/v1/tasks/{task.id}/log", headers={"Range": "bytes=10-"})
    assert is_problem(answer, 416, "range")
    assert answer.headers["content-range"] == "bytes */10"


async def test_where_the_middle_was_let_go_of_the_answer_says_so(api: Api) -> None:
    """X3: positions are those of everything that was ever written."""
    task, folder = await wrote(api, b"")
    size, hole = 64 * 1024, (16 * 1024, 32 * 1024)
    with open(folder.log, "wb") as log:
        log.write(b"a" * hole[0])
        log.seek(hole[1])
        log.write(b"b" * (size - hole[1]))
    # A log that is longer than its bounds is read as head and tail.
    whole = (await api.get(f"/v1/tasks/{task.id}/log")).content
    assert b"bytes were dropped here]" in whole
    assert whole.startswith(b"a")
    assert whole.endswith(b"b")
    answer = await api.get(f"/v1/tasks/{task.id}/log", headers={"Range": f"bytes={size - 5}-"})
    assert (answer.status_code, answer.content) == (206, b"bbbbb")
    missing = await api.get(f"/v1/tasks/{task.id}/log", headers={"Range": "bytes=20000-20010"})
    assert is_problem(missing, 416, "range")


async def test_artifacts_are_listed_and_downloaded(api: Api) -> None:
    task, folder = await wrote(api, b"")
    os.mkdir(folder.artifacts)
    content = os.urandom(600_000)
    Path(folder.artifacts, "bericht ü.pdf").write_bytes(content)
    listed = await api.json(f"/v1/tasks/{task.id}/artifacts")
    assert [(each["name"], each["bytes"]) for each in listed["items"]] == [
        ("bericht ü.pdf", len(content))
    ]
    answer = await api.get(f"/v1/tasks/{task.id}/artifacts/bericht ü.pdf")
    assert answer.content == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "filename*=UTF-8''bericht%20%C3%BC.pdf" in answer.headers["content-disposition"]


async def test_an_artifact_is_never_a_way_out_of_its_folder(api: Api, tmp_path: Path) -> None:
    """A job can put anything there: a link, a pipe, a folder."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    task, folder = await wrote(api, b"")
    os.mkdir(folder.artifacts)
    os.symlink(secret, f"{folder.artifacts}/link")
    os.symlink(tmp_path, f"{folder.artifacts}/folder")
    os.mkfifo(f"{folder.artifacts}/pipe")
    os.mkdir(f"{folder.artifacts}/dir")
    Path(folder.artifacts, ".hidden").write_text("hunter2")
    missing = await api.get(f"/v1/tasks/{task.id}/artifacts/none")
    assert is_problem(missing, 404, "not_found")
    for name in ("link", "pipe", "dir", ".hidden", "%2e%2e", "folder%2Fsecret", "..%2Foutput.log",
                 "%2Fetc%2Fpasswd", "..%5Coutput.log", "x" * 300):  # fmt: skip
        answer = await api.get(f"/v1/tasks/{task.id}/artifacts/{name}")
        assert answer.status_code in (404, 422), name
        assert b"hunter2" not in answer.content
    os.rename(folder.artifacts, f"{folder.path}/elsewhere")
    os.symlink(tmp_path, folder.artifacts)
    answer = await api.get(f"/v1/tasks/{task.id}/artifacts/secret")
    assert is_problem(answer, 404, "not_found")
