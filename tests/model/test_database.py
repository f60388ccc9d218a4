"""No password of an address is ever shown, however it is written."""

import os
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backburner.model.database import (
    check_address,
    hide_passwords,
    is_database,
    with_password,
    without_password,
)
from backburner.model.errors import UsageError
from backburner.model.home import Home, named_home
from backburner.runtime.home import home_of, leave_address, take_address_away


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada@db/work", "postgresql://ada@db/work"),
        ("postgresql://ada:hunter2@db:5432/work", "postgresql://ada@db:5432/work"),
        ("postgres://ada:hun%40ter2@db,other/work", "postgres://ada@db,other/work"),
        ("postgresql://ada:hun:ter2@[::1]:5432/work", "postgresql://ada@[::1]:5432/work"),
        ("postgresql://db/work?user=ada&password=hunter2", "postgresql://db/work?user=ada"),
        (
            "postgresql://db/?sslpassword=hunter2&sslmode=require",
            "postgresql://db/?sslmode=require",
        ),
        ("postgresql:///work?host=/run/postgresql", "postgresql:///work?host=/run/postgresql"),
        ("postgresql://%2Frun%2Fpostgresql/work", "postgresql://%2Frun%2Fpostgresql/work"),
        ("postgresql:///work", "postgresql:///work"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert is_database(address)
    assert without_password(address) == shown
    home = named_home(address)
    assert (home.shared, home.address, home.shown) == (True, address, shown)
    assert "hunter2" not in repr(home)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:hun@ter2@db/work",
        "postgresql://ada:hun/ter2@db/work",
        "postgresql://ada:hun?ter2@db/work",
        "postgresql://ada:hun#ter2@db/work",
        "postgresql://ada:hun%ter2@db/work",
        "postgresql://ada:hun ter2@db/work",
        "postgresql://ada:hunter2",
        "postgresql://db/work?PASSWORD=hunter2",
        "postgresql://db/work?pass%77ord=hunter2",
        "postgresql://db/work?password=hun@ter2",
        "postgresql://ada:hunter2@[/work",
    ],
)
def test_what_could_be_read_otherwise_is_refused_and_not_repeated(address: str) -> None:
    """libpq takes all after the first @ for the host, and says so to everybody."""
    with pytest.raises(UsageError, match="is not one") as refused:
        named_home(address)
    assert "%40" in refused.value.remedy
    for part in ("hun", "ter2"):
        assert part not in f"{refused.value} {refused.value.remedy} {without_password(address)}"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db:99999/work",
        "postgresql://db:0/work",
        "postgresql://db:5432,other:65536/work",
        "postgresql:///work?host=db&port=70000",
        "postgresql:///work?host=db&port=five",
    ],
)
def test_x10_a_port_that_there_cannot_be_is_refused(address: str) -> None:
    """libpq says it as of a database that is away, and for that one would wait."""
    with pytest.raises(UsageError, match="port") as refused:
        named_home(address)
    assert "65535" in refused.value.remedy


@pytest.mark.parametrize("port", ["", ":", ":1", ":65535", ":5432,[::1]:5433"])
def test_x10_any_other_port_is_taken(port: str) -> None:
    assert check_address(f"postgresql://db{port}/work?port=") == f"postgresql://db{port}/work?port="


def test_a_password_in_an_address_of_any_scheme_is_not_repeated() -> None:
    said = hide_passwords("no: mysql://u:hunter2@h/w, https://h/a@b, redis://:hunter2@h")
    assert said == "no: mysql://… https://h/a@b, redis://…"


PIECES = ("aquamarine", "bumblebee", "chrysalis")
SPECIAL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)


@given(
    SPECIAL,
    SPECIAL,
    st.sampled_from(
        [
            "postgresql://ada:{}@127.0.0.1:1/work",
            "postgresql://ada:{}@127.0.0.1:1/work?sslmode=disable",
            "postgres://127.0.0.1:1/work?user=ada&password={}",
            "postgresql://127.0.0.1:1/work?password={}&user=ada",
            "postgresql://ada:{}",
            "postgresql:/ada:{}@db/work",
            "Postgresql://ada:{}@db/work",
            "postgresql+psycopg://ada:{}@db/work",
            "postgresql+asyncpg://db/work?password={}",
            " postgresql://ada:{}@db/work",
            "host=db user=ada password={}",
            "password = {} host=db",
        ]
    ),
    st.booleans(),
)
def test_no_part_of_a_password_is_ever_shown(
    first: str, second: str, form: str, escaped: bool
) -> None:
    # Where nothing follows the password, an @ in it ends it: the rest is a host, and is shown.
    assume(escaped or not form.endswith("://ada:{}") or "@" not in first + second)
    password = PIECES[0] + first + PIECES[1] + second + PIECES[2]
    address = form.format(quote(password, safe="") if escaped else password)
    said = [without_password(address)]
    if "postgres" in form.lower():  # a command line is told of what it was given
        said.append(hide_passwords(f"got an unexpected argument ({address})", [address]))
    try:
        home = named_home(address)
        said += [repr(home), home.shown, str(home.root)]
    except UsageError as error:
        said += [error.message, error.remedy]
    assert not any(piece in text for text in said for piece in PIECES), said


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_a_password_of_the_environment_is_added_as_it_is(password: str) -> None:
    psycopg = pytest.importorskip("psycopg.conninfo")
    for address in ("postgresql://ada@db/work", "postgresql:///work?host=/run/x"):
        both = check_address(with_password(address, password))
        assert psycopg.conninfo_to_dict(both)["password"] == password
        assert without_password(both) == address
    assert check_address(with_password("postgresql://db/work?", password)).count("?") == 1
    own = "postgresql://ada:own@db/work"
    assert with_password(own, password) == own
    assert with_password(f"{address}&password=own", password) == f"{address}&password=own"


def test_the_folder_of_an_address_does_not_depend_on_the_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_HOME", "postgresql://ada:old@db/work")
    one = named_home(None)
    assert one.root == named_home("postgresql://ada:new@db/work").root
    assert one.root == named_home("postgresql://ada@db/work").root
    assert one.root != named_home("postgresql://ada:old@db/other").root
    assert one.root != named_home("postgresql://ada@db/work?application_name=x").root
    assert isinstance(one, Home)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql+psycopg://u:hunter2@h/w",
        "mysql://h/w",
        "host=h password=hunter2",
        "postgresql:/u:hunter2@h/w",
    ],
)
def test_what_is_no_folder_and_no_address_makes_no_folder(text: str) -> None:
    with pytest.raises(UsageError, match="neither a folder nor the address") as refused:
        named_home(text)
    assert "hunter2" not in f"{refused.value} {refused.value.remedy}"


def test_the_folder_of_a_worker_within_a_home_leaves_it_a_home(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()  # where a worker lies that was given no folder
    assert not home_of(tmp_path).shared


def test_a_worker_leaves_the_address_for_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hun@ter2")
    home = Home(tmp_path, "postgresql://ada@db/work")
    Path(home.node).touch()
    with pytest.raises(UsageError, match="a worker that has left"):
        home_of(tmp_path)
    held = leave_address(home)
    assert held is not None
    assert "ter2" not in Path(home.record).read_text(), "a password is on no disk"
    assert Path(home.record).stat().st_mode & 0o777 == 0o600
    there = home_of(tmp_path)
    assert there.address == "postgresql://ada@db/work?password=hun%40ter2"
    assert there.shown == "postgresql://ada@db/work"
    os.close(held)
    with tempfile.TemporaryFile() as other:
        assert other.fileno() == held, "what has its number now is not read"
        with pytest.raises(UsageError, match="that has left"):
            home_of(tmp_path)
    monkeypatch.delenv("PGPASSWORD")
    assert leave_address(home) is None
    assert home_of(tmp_path).address == home.address, "also while the worker is away"
    take_address_away(home)
    assert not Path(home.record).exists()
