"""Addresses of records that many machines share."""

_SECRET = ("password", "sslpassword")


def is_database(text: str) -> bool:
    """Whether it is the address of such a record, and no folder."""
    return text.startswith(("postgresql://", "postgres://"))


def without_password(address: str) -> str:
    """The address as it may be shown."""
    scheme, _, rest = address.partition("://")
    place, mark, query = rest.partition("?")
    # Up to the last @, whatever stands before it: better too little is shown than a password.
    user, at, host = place.rpartition("@")
    kept = [each for each in query.split("&") if each.partition("=")[0].lower() not in _SECRET]
    shown = "&".join(kept)
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{mark if shown else ''}{shown}"
