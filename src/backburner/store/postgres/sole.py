"""Something that one process of all machines is at a time: a lock that ends with its connection."""

import hashlib

import psycopg

from backburner.store.postgres.connection import Connection, connect

_SILENT_S = 30
"""Who stops while it is the one loses that: its kernel would say for ever that it is there. It asks
more often than that whether it still is."""


class Sole:
    """May block: to be called in a thread. Not for two threads at once."""

    def __init__(self, address: str, name: str) -> None:
        self._address = address
        digest = hashlib.blake2b(f"backburner {name}".encode(), digest_size=8).digest()
        self._number = int.from_bytes(digest, signed=True)
        self._connection: Connection | None = None

    def take(self) -> bool:
        """Whether it is ours, from now on or still. psycopg.Error where the database is away."""
        try:
            if self._connection is None:
                self._connection = connect(self._address, idle_session_timeout=f"{_SILENT_S}s")
                query = f"SELECT pg_try_advisory_lock({self._number})".encode()
                row = self._connection.execute(query).fetchone()
                taken = row is not None and bool(row[0])
            else:
                self._connection.execute(b"SELECT 1")
                taken = True
        except psycopg.Error:
            self.close()
            raise
        if not taken:
            self.close()
        return taken

    def close(self) -> None:
        """Somebody else may be it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
