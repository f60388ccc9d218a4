"""Which addresses may be talked to, and connecting to none but those.

A name is looked up once, what came out is checked, and that very address is connected to: a name
that leads elsewhere a moment later does not get around the check.
"""

import ipaddress
import socket
import time

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(OSError):
    """The address is one of this machine or of its network."""


def is_public(text: str) -> bool:
    """Whether this is the address of a machine on the internet, and of nothing nearer."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        else:
            # What carries an address of the old kind inside leads to that one.
            address = address.ipv4_mapped or address.sixtofour or address
    return address.is_global and not (address.is_multicast or address.is_reserved)


def is_certainly_private(host: str) -> bool:
    """Whether that is clear without looking anything up."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return not is_public(name)


def connect(host: str, port: int, *, deadline: float, allow_private: bool) -> socket.socket:
    """A connection to a public address of this name; ``deadline`` is in monotonic time.

    Refused where it leads to private ones; OSError where it leads nowhere.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    allowed = [entry for entry in found if allow_private or is_public(str(entry[4][0]))]
    if not allowed:
        raise Refused(f"{host} leads to {found[0][4][0]}, which is not on the internet")
    problem: OSError | None = None
    for family, kind, protocol, _, address in allowed:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            connection.connect(address)
        except OSError as error:
            connection.close()
            problem = error
        else:
            return connection
    assert problem is not None
    raise problem
