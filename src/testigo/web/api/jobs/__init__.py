"""The routes of jobs: listed, looked at, submitted and steered."""

from __future__ import annotations

from testigo.web.api.jobs import holding, listing, looking, steering, submitting

__all__ = ["parts"]

parts = (listing.routes, submitting.routes, looking.routes, holding.routes, steering.routes)
"""In this order: what has a fixed path comes before what has an id in its place."""
