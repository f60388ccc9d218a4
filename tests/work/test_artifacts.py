"""X5: files that a job adds: copied whole or not at all, under safe names, within limits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.model.errors import BackburnerError, LimitReached, NotAllowed, NotFound, UsageError
from backburner.model.home import AttemptFolder
from backburner.model.limits import ARTIFACTS_MAX, Settings
from backburner.model.outcome import Image
from backburner.work import artifacts
from backburner.work.artifacts import add, artifacts_of, check, put_images

SETTINGS = Settings()


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    (tmp_path / "attempt").mkdir()
    return AttemptFolder(str(tmp_path / "attempt"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "app.tar.gz"
    path.write_bytes(b"content")
    return path


def names(folder: AttemptFolder) -> list[str]:
    return [each.name for each in artifacts_of(folder)]


def test_x5_a_copy_is_kept(folder: AttemptFolder, source: Path) -> None:
    added = add(folder, str(source), None, SETTINGS)
    source.write_bytes(b"changed")
    assert (added.name, added.bytes) == ("app.tar.gz", 7)
    assert Path(added.path).read_bytes() == b"content"
    assert Path(added.path).stat().st_mode & 0o777 == 0o600
    assert artifacts_of(folder) == [added]
    assert os.listdir(folder.artifacts) == ["app.tar.gz"]


def test_x5_a_name_that_is_taken_gets_a_number(folder: AttemptFolder, source: Path) -> None:
    for _ in range(3):
        add(folder, str(source), None, SETTINGS)
    assert names(folder) == ["app.tar-2.gz", "app.tar-3.gz", "app.tar.gz"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "_._.._etc_passwd"),
        (".env", "_env"),
        ("..", "artifact"),
        ("a\nb\x1b[1m.txt", "a_b_[1m.txt"),
        ("  ", "artifact"),
        ("é" * 300 + ".txt", "é" * 98 + ".txt"),
        ("x." + "y" * 300, "x." + "y" * 198),
        ("byte \udcff.bin", "byte _.bin"),
    ],
)
def test_x5_every_name_is_made_safe(
    folder: AttemptFolder, source: Path, given: str, name: str
) -> None:
    add(folder, str(source), given, SETTINGS)
    assert names(folder) == [name]
    assert os.listdir(os.path.dirname(folder.artifacts)) == ["artifacts"]


def refused(kind: str, source: Path, tmp_path: Path) -> tuple[str, type[BackburnerError], str]:
    path = tmp_path / kind
    match kind:
        case "folder":
            path.mkdir()
            return str(path), UsageError, "is a folder"
        case "pipe":
            os.mkfifo(path)
            return str(path), UsageError, "no plain file"
        case "device":
            return "/dev/zero", UsageError, "no plain file"
        case "missing":
            return str(path), NotFound, "there is no file"
        case "below a file":
            return f"{source}/x", NotFound, "there is no file"
        case "a loop":
            path.symlink_to(path)
            return str(path), UsageError, "cannot be read"
        case "NUL":
            return "a\0b", UsageError, "NUL"
        case _:
            with path.open("wb") as file:
                file.truncate(10 * 2**30)
            return str(path), LimitReached, "larger than 100 MiB"


@pytest.mark.parametrize(
    "kind",
    ["folder", "pipe", "device", "missing", "below a file", "a loop", "NUL", "10 GB"],
)
def test_x5_what_cannot_be_kept_is_refused_and_nothing_changes(
    folder: AttemptFolder, source: Path, tmp_path: Path, kind: str
) -> None:
    path, error, text = refused(kind, source, tmp_path)
    for attempt in (lambda: add(folder, path, None, SETTINGS), lambda: check(path, SETTINGS)):
        with pytest.raises(error, match=text):
            attempt()
    assert os.listdir(folder.path) == []


def test_x5_what_may_not_be_read_is_refused(
    folder: AttemptFolder, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")  # root may read everything

    monkeypatch.setattr(artifacts.os, "open", denied)
    with pytest.raises(NotAllowed, match="permission denied"):
        add(folder, str(source), None, SETTINGS)


def test_x3_all_together_have_a_limit(folder: AttemptFolder, source: Path) -> None:
    limits = Settings(artifact_limit=10, artifacts_limit=20)
    add(folder, str(source), None, limits)
    add(folder, str(source), None, limits)
    with pytest.raises(LimitReached, match="BACKBURNER_ARTIFACTS_LIMIT"):
        add(folder, str(source), None, limits)
    source.write_bytes(b"x" * 11)
    with pytest.raises(LimitReached, match="BACKBURNER_ARTIFACT_LIMIT"):
        add(folder, str(source), None, limits)
    assert len(os.listdir(folder.artifacts)) == 2


def test_x3_so_has_their_number(
    folder: AttemptFolder, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "ARTIFACTS_MAX", 2)
    for _ in range(2):
        add(folder, str(source), None, SETTINGS)
    with pytest.raises(LimitReached, match="2 artifacts"):
        add(folder, str(source), None, SETTINGS)


@pytest.mark.parametrize("by_kernel", [True, False])
def test_x3_a_file_that_grows_while_it_is_copied_is_refused(
    folder: AttemptFolder, source: Path, monkeypatch: pytest.MonkeyPatch, by_kernel: bool
) -> None:
    """It is as large as allowed when it is looked at, and has a byte more when it is read."""
    limits = Settings(artifact_limit=7)
    if not by_kernel:
        _without_copy_file_range(monkeypatch)
    true_locked = artifacts._locked  # pyright: ignore[reportPrivateUsage]

    def and_grows(place: AttemptFolder) -> object:
        source.write_bytes(b"content!")
        return true_locked(place)

    monkeypatch.setattr(artifacts, "_locked", and_grows)
    with pytest.raises(LimitReached):
        add(folder, str(source), None, limits)
    assert os.listdir(folder.artifacts) == []


def _without_copy_file_range(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(artifacts.os, "copy_file_range", cannot)


def test_x5_between_file_systems_it_is_copied_by_hand(
    folder: AttemptFolder, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_copy_file_range(monkeypatch)
    source.write_bytes(os.urandom(3 * 1024 * 1024 + 1))
    added = add(folder, str(source), None, SETTINGS)
    assert Path(added.path).read_bytes() == source.read_bytes()


def test_x5_what_is_in_the_folder_and_no_plain_file_is_not_listed(
    folder: AttemptFolder, source: Path
) -> None:
    add(folder, str(source), None, SETTINGS)
    place = Path(folder.artifacts)
    (place / "link").symlink_to("/etc/passwd")
    (place / "folder").mkdir()
    os.mkfifo(place / "pipe")
    (place / ".hidden").touch()
    assert names(folder) == ["app.tar.gz"]


def test_x5_any_number_of_processes_may_add_at_once_within_the_limit(
    folder: AttemptFolder, source: Path
) -> None:
    program = (
        "import sys; from backburner.work.artifacts import add;"
        "from backburner.model.home import AttemptFolder;"
        "from backburner.model.limits import Settings;"
        "add(AttemptFolder(sys.argv[1]), sys.argv[2], None, Settings(artifacts_limit=5 * 7))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, folder.path, str(source)], stderr=subprocess.DEVNULL
        )
        for _ in range(8)
    ]
    assert sorted(bool(each.wait(60)) for each in started) == [False] * 5 + [True] * 3
    assert len(os.listdir(folder.artifacts)) == 5


def test_e1_pictures_are_kept_within_the_limits_of_files(folder: AttemptFolder) -> None:
    limits = Settings(artifact_limit=5, artifacts_limit=8)
    pictures = [
        Image(b"1234"),
        Image(b"123456", name="../large.png"),
        Image(b"1234", "image/svg+xml"),
        Image(b"1", name="../a"),
    ]
    kept, refused = put_images(folder, pictures, limits)
    assert names(folder) == sorted(os.path.basename(path) for path in kept)
    assert names(folder) == ["_._a", "image-1.png", "image-3.svg"][1:]
    assert [Path(path).read_bytes() for path in kept] == [b"1234", b"1234"]
    assert all("a picture was not kept" in reason for reason in refused)
    assert "larger than 5 bytes" in refused[0]
    assert "larger than 8 bytes" in refused[1]


def test_e1_no_more_pictures_are_kept_than_there_may_be_files(folder: AttemptFolder) -> None:
    kept, refused = put_images(folder, [Image(b"x")] * (ARTIFACTS_MAX + 5))
    assert (len(kept), len(refused)) == (ARTIFACTS_MAX, 1)
