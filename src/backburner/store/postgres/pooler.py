"""A pooler in transaction mode, over which a program only reads.

What listens, holds the lock of the writers or has something prepared needs a session of its own,
and stays with the database itself.
"""

from typing import Any

from backburner.model.errors import StoreAway, StoreUnusable, UsageError
from backburner.store.postgres.connection import (
    Connection,
    connect,
    connect_pooled,
    conninfo,
    explained,
)

_WHICH = b"""
    SELECT system_identifier, current_database() FROM pg_control_system()
"""


class Pooler:
    """One that is known to lead to the same database."""

    def __init__(self, address: str, database: Connection) -> None:
        """StoreUnusable where it leads to another one; StoreAway where it cannot be reached."""
        self._address = address
        try:
            conninfo(address)
        except UsageError as error:
            raise UsageError(f"BACKBURNER_POOLER: {error.message}", remedy=error.remedy) from None
        with explained():
            self._which = database.execute(_WHICH).fetchall()
        try:
            with explained():
                self.connect().close()
        except StoreAway as error:
            raise StoreAway(
                f"the pooler cannot be reached, or not the database behind it: {error.message}",
                remedy="check BACKBURNER_POOLER, and that the pooler runs and lets this user in",
            ) from error

    def connect(self) -> Connection:
        """A connection through it. psycopg.Error where there is none to be had."""
        connection = connect_pooled(self._address)
        try:
            # Each one: a pooler is led elsewhere, too.
            self._check(connection.execute(_WHICH).fetchall())
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, found: list[tuple[Any, ...]]) -> None:
        if found == self._which:
            return
        raise StoreUnusable(
            "the pooler does not lead to the database of this record",
            remedy="BACKBURNER_POOLER and the address of the record have to mean the same database",
        )


def check_pooler(address: str, pooler: str) -> None:
    """A BackburnerError where the record at this address cannot be read over that pooler."""
    with explained():
        database = connect(address)
    try:
        Pooler(pooler, database)
    finally:
        database.close()
