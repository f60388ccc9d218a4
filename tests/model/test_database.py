"""No password of an address is ever shown."""

from pathlib import Path

import pytest

from backburner.model.database import is_database, without_password
from backburner.model.errors import UsageError
from backburner.model.home import Home, named_home
from backburner.runtime.home import home_of


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada@db/work", "postgresql://ada@db/work"),
        ("postgresql://ada:hunter2@db:5432/work", "postgresql://ada@db:5432/work"),
        ("postgres://ada:hun@ter2@db,other/work", "postgres://ada@db,other/work"),
        ("postgresql://ada:hun/ter2@db/work", "postgresql://ada@db/work"),
        ("postgresql://db/work?user=ada&password=hunter2", "postgresql://db/work?user=ada"),
        ("postgresql://db/work?PASSWORD=hunter2", "postgresql://db/work"),
        ("postgresql:///work", "postgresql:///work"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert is_database(address)
    assert without_password(address) == shown
    home = named_home(address)
    assert (home.shared, home.address, home.shown) == (True, address, shown)
    assert "hunter2" not in repr(home)
    assert "ter2" not in repr(home)


def test_the_folder_of_an_address_does_not_depend_on_the_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_HOME", "postgresql://ada:old@db/work")
    one = named_home(None)
    assert one.root == named_home("postgresql://ada:new@db/work").root
    assert one.root != named_home("postgresql://ada:old@db/other").root
    assert isinstance(one, Home)


@pytest.mark.parametrize(
    "text", ["postgresql+psycopg://u:hunter2@h/w", "mysql://h/w", "host=h password=hunter2"]
)
def test_what_is_no_folder_and_no_address_makes_no_folder(text: str) -> None:
    with pytest.raises(UsageError, match="neither a folder nor the address") as refused:
        named_home(text)
    assert "hunter2" not in f"{refused.value} {refused.value.remedy}"


def test_the_folder_of_a_worker_within_a_home_leaves_it_a_home(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()  # where a worker lies that was given no folder
    assert not home_of(tmp_path).shared
