"""The browser that pages are looked at with: Debian's Chromium, driven from outside, with a fresh profile.

It sends nothing of its own: what is asked for while it runs was asked for by our pages.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chromium_program", "open_chromium"]

_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
)


def chromium_program() -> str | None:
    """The program that the environment variable CHROMIUM names, or Debian's; None where there is none."""
    return shutil.which(os.environ.get("CHROMIUM", "/usr/bin/chromium"))


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """A browser of one's own.

    While it is open no event loop can be run on this thread: the driver has one there.
    """
    from playwright.sync_api import sync_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_program(), args=[*_QUIET, *sandbox])
        try:
            yield browser
        finally:
            browser.close()
