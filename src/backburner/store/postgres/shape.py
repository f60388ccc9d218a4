"""What the record has beside its tables: indexes, constraints, triggers, policies, and the rights
of the role that acts for owners. A restore may leave any of it out, and the tables look whole.

sql/shape.txt is what the migrations make, a thing on a line; a test holds it to that.
"""

from functools import cache

from backburner.model.errors import StoreUnusable
from backburner.store.postgres.connection import SCHEMA, TENANT, Connection
from backburner.store.postgres.queries import sql_file
from backburner.store.postgres.statements import Statements
from backburner.store.record.transaction import Row

_RIGHT = "right "
_MAY_USE = f"{_RIGHT}USAGE"
_MAY_LOOK = (
    f"SELECT coalesce(has_schema_privilege(to_regrole('{TENANT}'), '{SCHEMA}', 'USAGE'), false)"
).encode()


@cache
def expected() -> frozenset[str]:
    """What the newest format has."""
    return frozenset(sql_file("shape.txt").splitlines())


def missing(found: list[Row]) -> list[str]:
    """What of it is not there. What there is beside it is somebody's own."""
    return sorted(expected() - {name for (name,) in found})


def is_right(name: str) -> bool:
    """Whether it can be granted again."""
    return name.startswith(_RIGHT)


def refuse_without_rights(connection: Connection) -> None:
    """Raise StoreUnusable where nothing can be done for an owner."""
    if not Statements(connection).command(_MAY_LOOK)[0][0]:
        raise StoreUnusable(
            f"the role {TENANT} has no right to the record, as after a restore without rights",
            remedy="backburner db migrate grants it again",
        )


def grant_again(connection: Connection) -> list[str]:
    """Give the role the rights that it lacks; only the rest of the shape may be missing then."""
    run = Statements(connection)
    granted = [name for name in missing(run.rows("check_shape")) if is_right(name)]
    for name in granted:
        right, _, table = name.removeprefix(_RIGHT).partition(" ")
        what = f"SCHEMA {SCHEMA}" if name == _MAY_USE else f"TABLE {SCHEMA}.{table}"
        run.command(f"GRANT {right} ON {what} TO {TENANT}".encode())
    return granted
