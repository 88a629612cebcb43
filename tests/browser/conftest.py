"""A browser, and what it is shown.

A browser is a module's: while one is open, nothing on this thread can run an event loop of its own, and other
tests do. A context is a test's, with a profile of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.chromium import open_chromium
from tests.browser.visits import Visitor
from tests.web.conftest import PATIENT, Site, served
from tests.worker.kit import PATIENCE_SECONDS
from tests.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUICK = replace(PATIENT, signal_seconds=0.1, ping_seconds=1.0)
"""A server that looks often, so that nothing need be waited for, and answers one caller as fast as a test asks."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module; what is expected of its pages may take as long as elsewhere."""
    from playwright.sync_api import expect

    with open_chromium() as opened:
        expect.set_options(timeout=PATIENCE_SECONDS * 1000)
        yield opened
        expect.set_options(timeout=None)


@pytest.fixture
def site(database_url: str, world: World) -> Iterator[Site]:
    """A site of the test's own, which looks often for what has changed."""
    with served(database_url, world, QUICK) as made:
        yield made


@pytest.fixture
def visitor(browser: Browser, site: Site) -> Iterator[Visitor]:
    """Somebody at that site, with a browser's profile of their own, whose pages must have made no complaint."""
    with visiting(browser, site) as somebody:
        yield somebody


@contextmanager
def visiting(browser: Browser, site: Site, **options: Any) -> Iterator[Visitor]:
    """Somebody at a site, whose pages must have made no complaint."""
    with ExitStack() as stack:
        context = browser.new_context(base_url=site.url, **options)
        stack.callback(context.close)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        somebody = Visitor(site, context)
        yield somebody
        assert not somebody.complaints, somebody.complaints
