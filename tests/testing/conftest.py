"""An installation of the test's own, as users get it, on the run's shared server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testigo import App
from testigo.testing import Trial, trial


@pytest.fixture
def testigo(server_url: str) -> Iterator[Trial]:
    """What our own fixture gives, without a server for it alone."""
    with trial(server_url) as one:
        yield one


@pytest.fixture
def app(testigo: Trial) -> App:
    """An App that uses it."""
    one = App("shop")
    testigo.use(one)
    return one
