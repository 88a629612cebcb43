"""Listings as tests read them: page by page, and with small bounds."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from testigo.authority.read import Page, late_results, paused, queues, tombstones
from testigo.operations import items as items_of
from testigo.settings import LIMITS
from tests.world import World

__all__ = ["every", "items", "short_walks"]


def short_walks(monkeypatch: pytest.MonkeyPatch, module: str, **limits: int) -> None:
    """Let a listing look at few rows a page, or count to a small number."""
    monkeypatch.setattr(sys.modules[f"testigo.authority.read.{module}"], "LIMITS", replace(LIMITS, **limits))


def every(world: World, listing: Any, **asked: Any) -> list[Page[Any]]:
    """All pages of a listing."""
    place = "after" if listing in (queues, paused, tombstones, late_results, items_of) else "before"
    args = [asked.pop(name) for name in ("job_id", "wanted", "operation_id") if name in asked]
    pages = [world.db.run(listing, *args, **asked)]
    while pages[-1].next is not None:
        pages.append(world.db.run(listing, *args, **asked, **{place: pages[-1].next}))
    return pages


def items(pages: list[Page[Any]]) -> list[Any]:
    """What is on these pages."""
    return [item for page in pages for item in page.items]
