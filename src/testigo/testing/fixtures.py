"""A plugin of pytest: name it in the `conftest.py` at the root of the tests.

    pytest_plugins = ["testigo.testing.fixtures"]

It is not loaded by itself, so that testigo costs nothing where it is merely installed. To test on a server
of one's own, and not on an embedded one, define a fixture `testigo_server` that returns its URL.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testigo.store.embedded import EmbeddedServer
from testigo.testing.trial import Trial, trial

__all__ = ["testigo", "testigo_server"]


@pytest.fixture(scope="session")
def testigo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an embedded server, which runs for as long as the tests of this process (`testigo[embedded]`)."""
    with EmbeddedServer.use(tmp_path_factory.mktemp("testigo")) as server:
        yield server.url


@pytest.fixture
def testigo(testigo_server: str) -> Iterator[Trial]:
    """An installation of the test's own; `testigo.use(app)` has an App use it."""
    with trial(testigo_server) as one:
        yield one
