"""Pruning: what has ended is removed after a stated time, in small batches, and nothing is done twice for it.

Each function is one transaction of at most so many rows, sent by sweeps until it says that there is no
more. Nothing here trusts a clock for safety: clocks say only how long things are kept. Streams of
events are pruned by the journal.
"""

from __future__ import annotations

from testigo.authority.prune.batches import Pruned
from testigo.authority.prune.jobs import prune_jobs
from testigo.authority.prune.receipts import prune_receipts
from testigo.authority.prune.sessions import prune_sessions
from testigo.authority.prune.tombstones import prune_tombstones

__all__ = ["Pruned", "prune_jobs", "prune_receipts", "prune_sessions", "prune_tombstones"]
