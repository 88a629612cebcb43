"""A run as its keeper knows it, from the claim to the answer of its settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testigo.authority.claim import Lease
    from testigo.authority.settle import Settlement
    from testigo.worker.runners import Runner
    from testigo.worker.term import Term

__all__ = ["Run"]


class Run:
    """One row of the keeper's table; only the main thread changes it until it is handed to the settler."""

    __slots__ = (
        "alone",
        "end",
        "kill_at",
        "lease",
        "limit_at",
        "published",
        "runner",
        "stopping",
        "term",
        "ticket",
        "told",
        "unreported",
        "walk",
    )

    def __init__(self, ticket: int, lease: Lease, term: Term, walk: int) -> None:
        self.ticket = ticket
        self.lease = lease
        self.term = term
        self.walk = walk
        """Whose free slots it was claimed for: 0 of the shared runners, 1 of those for one run, 2 of the publisher."""
        self.published = walk == 2
        """Whether the publisher runs it."""
        self.alone = walk == 1 or (walk == 0 and lease.losses > 0)
        """Whether it needs a runner of its own: by its kind, or because it was lost before (field case R20)."""
        self.runner: Runner | None = None
        self.limit_at = 0.0
        """The hard limit, on `time.monotonic`."""
        self.stopping: str | None = None
        """Why it was told to stop, or None."""
        self.kill_at = 0.0
        """When the runner is killed if the run has not stopped."""
        self.end: Settlement | None = None
        self.told = 0
        """How many notes it has made."""
        self.unreported = 0
        """How many of them the authority does not have yet."""
