"""X5, E6: where artifacts of a shared record lie; names are hostile, and so may be sizes."""

import os
from pathlib import Path

import pytest

from backburner.model.errors import ArtifactsUnreachable, NotFound, UsageError
from backburner.work.depot import Depot, check_address, key_of


@pytest.mark.parametrize(
    "address",
    [
        "", "artifacts", "/srv/artifacts", "file://srv/artifacts", "memory://x", "https://x/y",
        "s3://bucket/x?versionId=1", "zip::file:///x", "s3:///folder", "s3://[x/y",
    ],
)  # fmt: skip
def test_an_address_that_machines_cannot_share_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="file:///srv/artifacts"):
        check_address(address)


def test_an_address_that_holds_a_secret_is_refused_and_the_secret_is_not_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        check_address("s3://key:hunter2@bucket/folder")
    assert "hunter2" not in str(refused.value)


def test_a_file_system_that_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pip install gcsfs"):
        Depot("gs://bucket/folder").remove("x")


@pytest.mark.parametrize(
    "name",
    ["..", "a/b", "~root", "*", "[x]", "x?versionId=1", "s3::x", "%2e%2e", "a\\b", "é" * 200, "#x"],
)
def test_a_hostile_name_becomes_a_key_that_means_nothing_else(name: str) -> None:
    key = key_of(name)
    assert key.startswith("~")
    assert not set(key) & set("/*?[]#%:\\.")
    assert len(key.encode()) < 200


@pytest.mark.parametrize("name", ["report.pdf", "Bericht März (2).txt", "a,b=c+d@e-f_g.tar.gz"])
def test_a_plain_name_stays_what_it_is(name: str) -> None:
    assert key_of(name) == name


def test_different_names_have_different_keys() -> None:
    names = ["a*", "a?", "b*", key_of("a*")]
    assert len({key_of(name) for name in names}) == len(names)


def test_a_file_comes_back_as_it_was_and_is_removed(tmp_path: Path) -> None:
    depot = Depot(f"file://{tmp_path}/depot")
    data = os.urandom(3 * 1024 * 1024 + 1)
    (tmp_path / "source").write_bytes(data)
    with open(tmp_path / "source", "rb") as source:
        depot.put("bg_x.1.7", "../out*", source.fileno(), len(data))
    assert [path.parent.name for path in tmp_path.glob("depot/*/*")] == ["bg_x.1.7"]
    with open(tmp_path / "target", "w+b") as target:
        depot.get("bg_x.1.7", "../out*", target.fileno(), len(data))
        assert (tmp_path / "target").read_bytes() == data
        with pytest.raises(NotFound):
            depot.get("bg_x.1.7", "other", target.fileno(), 1)
        with pytest.raises(NotFound):  # somebody has changed it
            depot.get("bg_x.1.7", "../out*", target.fileno(), 5)
    depot.remove("bg_x.1.7")
    depot.remove("bg_x.1.7")
    assert not list(tmp_path.glob("depot/*"))


def test_never_more_than_the_size_is_copied(tmp_path: Path) -> None:
    depot = Depot(f"file://{tmp_path}/depot")
    (tmp_path / "source").write_bytes(b"0123456789")
    with open(tmp_path / "source", "rb") as source:
        depot.put("t", "grows", source.fileno(), 4)
        with pytest.raises(ArtifactsUnreachable, match="shorter"):
            depot.put("t", "shrinks", source.fileno(), 11)
    assert (tmp_path / "depot/t/grows").read_bytes() == b"0123"


def test_a_place_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    (tmp_path / "depot").write_text("no folder")
    depot = Depot(f"file://{tmp_path}/depot")
    with open(tmp_path / "depot", "rb") as source, pytest.raises(ArtifactsUnreachable):
        depot.put("t", "x", source.fileno(), 1)
