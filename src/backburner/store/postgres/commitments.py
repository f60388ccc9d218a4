"""What a writer leaves in the database with each commit: its number. So it can be asked whether a

commit is there whose answer was lost.

The number of a transaction would not do: after a crash the database gives it to another one.
"""

import secrets
from collections.abc import Mapping
from typing import Any

from backburner.store.postgres.statements import Statements
from backburner.store.postgres.writers_lock import LOCK

_SIGN = (
    b"INSERT INTO commitment (writer, number) VALUES (%(writer)s, %(number)s) ON CONFLICT (writer)"
    b" DO UPDATE SET number = excluded.number, at = excluded.at"
)
_WHAT_WAS_SIGNED = (
    b"BEGIN; " + LOCK + b"; SELECT max(number) FROM commitment WHERE writer = '%s'; COMMIT"
)
_SIGN_OFF = (
    # Nobody waits for the disk: what a crash takes with it is forgotten a day later.
    b"SET synchronous_commit = off;"
    b" DELETE FROM commitment WHERE writer = '%s' OR at < clock_timestamp() - interval '1 day'"
)


class Commitments:
    """Of one writer."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(8)
        self._number = 0
        """Of the last one."""

    def next(self) -> tuple[bytes, Mapping[str, Any]]:
        """The statement that signs one more."""
        self._number += 1
        return _SIGN, {"writer": self._name, "number": self._number}

    def is_there(self, run: Statements) -> bool:
        """Whether the last one is on record. Asked under the lock, which a transaction that is

        being committed holds until it is over.
        """
        return run.rows_of(_WHAT_WAS_SIGNED % self._name.encode())[2][0][0] == self._number

    def sign_off(self, run: Statements) -> None:
        """There are no more to come."""
        run.command(_SIGN_OFF % self._name.encode())
