"""What the tests of access share."""

from __future__ import annotations

import pytest

from testigo.store.database import Database
from tests.access.people import People


@pytest.fixture
def people(db: Database) -> People:
    """The people of the test's own installation."""
    return People(db)
