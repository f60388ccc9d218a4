"""Reading the record: a connection of its own, no event loop needed.

Every read is answered out of the page cache, quicker than a hand-over to a thread, so callers run
it where they are. It is also all that `backburner ls` loads.
"""

import os
from typing import Any

import apsw

from backburner.model.errors import StoreError
from backburner.store.record import reading
from backburner.store.record.leases import BootClock
from backburner.store.record.transaction import Row
from backburner.store.sqlite.connection import connect, explain, pragma
from backburner.store.sqlite.migrations import is_current, refuse_newer
from backburner.store.sqlite.statements import Statements


class Reader(reading.Reader):
    """The read half of the embedded store."""

    def __init__(self, path: str, boot_id: str = "") -> None:
        """Without a boot, one that does not ask what can be claimed."""
        self._leases = BootClock(boot_id)
        self._path = path
        self._connection = connect(path, readonly=True, create=False)
        self._statements = Statements(self._connection)
        self.outdated: StoreError | None = None

    @classmethod
    def if_current(cls, path: str) -> "Reader | None":
        """A reader where the record is there and needs no migration."""
        if not os.path.exists(path):
            return None
        reader = cls(path)
        if is_current(reader._connection):
            return reader
        reader.close()
        return None

    def look_at_format(self) -> None:
        """A record that a newer program has brought to another shape is not read any more."""
        try:
            refuse_newer(self._connection)
        except StoreError as error:
            self.outdated = error
        except apsw.Error:
            pass  # the next read says what is wrong

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        if self.outdated is not None:
            raise self.outdated
        try:
            return self._statements.rows(name, **values)
        except apsw.Error as error:
            raise explain(error, self._path) from error

    def data_version(self) -> int:
        """Changes when another connection has committed."""
        return pragma(self._connection, "data_version")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
