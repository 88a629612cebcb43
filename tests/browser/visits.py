"""Somebody in front of a browser: their pages, and all that went wrong on them.

What a page says on its console, raises, asks of another origin, or is refused by the policy is a complaint;
`faults` looks at a page as it stands: with axe, and for what is wider than the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.web.panel.looks import COOKIE as LOOKS_COOKIE
from testigo.web.panel.looks import Looks
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.web.conftest import Site

__all__ = ["Visitor", "faults"]

_TELLS_OF_REFUSALS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} refused ${event.blockedURI} ${event.sample}`));
"""

_WIDER = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll, pre, .hidden, svg"))
  .map((each) => each.outerHTML.slice(0, 120))"""


class Visitor:
    """Somebody at a site. `complaints` are what their pages said, but for what has a word among `expected` in it."""

    def __init__(self, site: Site, context: BrowserContext) -> None:
        self.site = site
        self.context = context
        self.complaints: list[str] = []
        self.expected: set[str] = set()
        context.add_init_script(_TELLS_OF_REFUSALS)
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(f"{error.page and error.page.url}: {error.error}"))
        context.on("request", self._asked)

    def log_in(self, role: Role) -> Visitor:
        """Be the user of this role, without a page that asks for a password."""
        return self.be(self.site.logged_in(str(role)))

    def be(self, secret: Secret) -> Visitor:
        """Be whose login this is."""
        self.context.add_cookies([{"name": LOGIN_COOKIE, "value": secret.text, "url": self.site.url}])
        return self

    def looks(self, **chosen: str) -> None:
        """Have the panel look so: `theme`, `language`, `keys`, as its settings keep it."""
        cookie = Looks().but(chosen).cookie
        self.context.add_cookies([{"name": LOOKS_COOKIE, "value": cookie, "url": self.site.url}])

    def open(self, path: str, status: int = 200) -> Page:
        """A new page, which was answered with this status."""
        page = self.context.new_page()
        self.go(page, path, status)
        return page

    def go(self, page: Page, path: str, status: int = 200) -> Response:
        """The page at another address, which was answered with this status."""
        if status >= 400:
            self.expected.add(f"status of {status}")
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == status, (path, answer.status)
        return answer

    def _said(self, message: ConsoleMessage) -> None:
        expected = any(word in message.text for word in self.expected)
        if message.type in ("error", "warning") and not expected:
            self.complaints.append(f"{message.page and message.page.url}: {message.text}")

    def _asked(self, request: Request) -> None:
        address = urlsplit(request.url)
        if f"{address.scheme}://{address.netloc}" != self.site.url:
            self.complaints.append(f"asked for {request.url}")


def faults(page: Page, *, only: Sequence[str] = ()) -> Iterator[str]:
    """What is wrong with a page as it stands, by these rules of axe or all of them."""
    if not page.evaluate("typeof axe === 'object'"):  # it is brought in once a page: there is half a megabyte of it
        page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **({"runOnly": list(only)} if only else {})}
    found: Any = page.evaluate("async (options) => (await axe.run(options)).violations", options)
    for violation in found:
        for node in violation["nodes"][:3]:
            yield f"{page.url}: {violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
    width, wide = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    if wide > width:
        yield f"{page.url}: {wide} px wide on {width}: {page.evaluate(_WIDER)[:3]}"
