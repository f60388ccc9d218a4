"""Who may come in over HTTP, and as whom: the one place where an Authorization header is judged.

There are no tokens, so the server is bound to this machine, and whoever reaches it is the person
who started it. A header that is sent all the same says nothing.
"""

import ipaddress
from dataclasses import dataclass

from backburner.model.errors import UsageError
from backburner.model.limits import DEFAULT_OWNER

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Admission:
    """What a request may touch."""

    owner: str
    session: str | None
    """The one session that it is for; None for that of the client."""


LOCAL = Admission(DEFAULT_OWNER, None)
"""The person who started the server."""


def admitted(authorization: str | None) -> Admission:  # noqa: ARG001 - there are no tokens
    """What a request with this header may touch. NotAllowed where that is nothing."""
    return LOCAL


def check_bound(host: str) -> str:
    """The address to listen on. UsageError where others than this machine could reach it."""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise UsageError(
            f"MCP is not served on {host}: without tokens, whoever reaches it could run commands"
            " as you",
            remedy=f"leave the address out, or use {LOOPBACK} and a tunnel",
        )
    return LOOPBACK if host == "localhost" else host
