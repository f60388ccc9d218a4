"""Addresses of records that many machines share.

Strict on purpose: what could be read in another way than it was meant, such as a password with an @
in it, is refused and not repeated; and only what was understood is ever shown.
"""

import re
from collections.abc import Callable, Iterable

from backburner.model.errors import UsageError

_BEGINS = ("postgresql://", "postgres://")
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|(?:[\w.~+-]|%[0-9A-Fa-f]{2})*)(?::[0-9]{0,5})?"
_PLAIN = r"[^\x00-\x20\x7f%:@/?#&\[\]]|%[0-9A-Fa-f]{2}"
_OPTION = rf"[a-z_]+=(?:{_PLAIN}|[:/])*"
_ADDRESS = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)"
    rf"(?:(?P<user>(?:{_PLAIN}|&)*)(?P<password>:(?:{_PLAIN}|[:&])*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<name>/(?:{_PLAIN}|&)*)?"
    rf"(?:\?(?P<options>{_OPTION}(?:&{_OPTION})*)?)?"
)
_ALMOST = re.compile(
    r"(?i)\s*postgres(?:ql)?:|\s*(?:host|hostaddr|port|dbname|user|service)\s*=|.*password\s*="
)
"""What somebody may have meant for an address. It is no folder, and is not shown either."""

_IN_TEXT = re.compile(
    r"(?i)(?:postgres(?:ql)?(?:\+[\w.+-]*)?:(?!//…)/*"
    r"|(?<![\w.+-])[a-z][\w.+-]*://(?=[^\s/@]*:\S*@))[^\s'\"<>]*"
)
"""Also as other libraries spell it, and of any scheme where a password is before an @."""

_PORT = re.compile(r":([0-9]+)$")
_LAST_PORT = 65535

_SECRET = ("password", "sslpassword")
_SHOWN = ("host", "hostaddr", "port", "user", "dbname", "service", "sslmode")


def is_database(text: str) -> bool:
    """Whether it is the address of such a record, or is meant to be, and no folder."""
    return text.startswith(_BEGINS)


def is_no_folder(text: str) -> bool:
    """Whether it is neither: a mistake, which may hold a password."""
    return "://" in text or _ALMOST.match(text) is not None


def check_address(text: str) -> str:
    """The address; UsageError where it is none, or could be read in another way than meant."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise UsageError(
            "the address of the record is not one of PostgreSQL",
            remedy="write it as postgresql://user@host:5432/database; in a password, write %40 for"
            " @, %2F for / and so on, or leave it to ~/.pgpass",
        )
    # Here, because it would look like a database that is away, which is waited for.
    if not all(port.isdecimal() and 0 < int(port) <= _LAST_PORT for port in _ports(found)):
        raise UsageError(
            "the address of the record has a port that there cannot be",
            remedy=f"write one from 1 to {_LAST_PORT}, such as postgresql://user@host:5432/database",
        )
    return text


def without_password(address: str) -> str:
    """The address as it may be shown."""
    return _shown(address, lambda name: name in _SHOWN)


def identity(address: str) -> str:
    """What tells it from other records: everything but the password. Not to be shown."""
    return _shown(address, lambda name: name not in _SECRET)


def with_password(address: str, password: str | None) -> str:
    """The same with a password, where it has none of its own."""
    found = _ADDRESS.fullmatch(address)
    if not password or found is None or found["password"] is not None:
        return address
    if any(name == "password" for name, _ in _options(found)):
        return address
    from urllib.parse import quote  # most commands do without

    between = "&" if found["options"] else "" if address.endswith("?") else "?"
    return f"{address}{between}password={quote(password, safe='')}"


def hide_passwords(text: str, words: Iterable[str] = ()) -> str:
    """A text in which somebody may have repeated an address, such as one of these words."""
    for word in words:
        if (found := _IN_TEXT.search(word)) is not None:
            meant = word[found.start() :]
            for spelled in (meant, " ".join(meant.split())):
                text = text.replace(spelled, _in_text(meant))
    return _IN_TEXT.sub(lambda found: _in_text(found[0]), text)


def _in_text(meant: str) -> str:
    if _ADDRESS.fullmatch(meant) is not None:
        return without_password(meant)
    return f"{meant.partition(':')[0]}://…"


def _shown(address: str, keeps: Callable[[str], bool]) -> str:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return "postgresql://…"
    user = "" if found["user"] is None else f"{found['user']}@"
    options = "&".join(f"{name}={value}" for name, value in _options(found) if keeps(name))
    return (
        f"{found['scheme']}{user}{found['hosts']}{found['name'] or ''}"
        f"{'?' if options else ''}{options}"
    )


def _ports(found: re.Match[str]) -> list[str]:
    """Those that are named; without one it is the usual one."""
    after_hosts = (_PORT.search(host) for host in found["hosts"].split(","))
    named = [each[1] for each in after_hosts if each is not None]
    for name, value in _options(found):
        if name == "port":
            named += [port for port in value.split(",") if port]
    return named


def _options(found: re.Match[str]) -> list[tuple[str, str]]:
    pairs = (each.partition("=") for each in (found["options"] or "").split("&"))
    return [(name, value) for name, _, value in pairs if name]
