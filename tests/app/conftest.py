"""An App on an installation of the test's own, with a few handlers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testigo import App
from tests.app.handlers import Handlers


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    """An App whose installation is the test's own."""
    one = App("shop", database_url)
    yield one
    one.close()


@pytest.fixture
def handlers(app: App) -> Handlers:
    """The handlers of that App."""
    return Handlers(app)
