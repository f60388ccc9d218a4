"""A database for what `deploy/` runs."""

import pytest

from tests import postgres_server
from tests.deploy.containers import PASSWORD


@pytest.fixture
def address() -> str:
    """A database as the image of PostgreSQL makes one: its user may do anything."""
    server = postgres_server.server()
    database = server.create_empty()
    if not server.run("SELECT 1 FROM pg_roles WHERE rolname = 'backburner'"):
        server.run(f"CREATE ROLE backburner SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    return database.replace("//test@", "//backburner@")
