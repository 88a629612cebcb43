"""Reads: what stands now, for people and for doors. They lock nothing, change nothing, and cost a bounded time.

Lists come in pages by key (`pages`); counts stop counting at `LIMITS.count_max`. Each read is one
statement. Why a job does not run, and when it will, is told by `explain`; what it went through, by the
journal.
"""

from __future__ import annotations

from testigo.authority.read.counts import states
from testigo.authority.read.details import Documents, JobView, Owner, by_key, job
from testigo.authority.read.ends import JobEnd, end
from testigo.authority.read.failed import Cause, Failures, causes, open_failures
from testigo.authority.read.filters import EVERY, Filter
from testigo.authority.read.jobs import JobSummary, jobs
from testigo.authority.read.lineage import Lineage, Related, lineage
from testigo.authority.read.pages import Count, Cursor, Page
from testigo.authority.read.progress import LogLineView, LogPage, LogPlace, ProgressView, log, progress
from testigo.authority.read.queues import Pause, QueueView, paused, queues
from testigo.authority.read.records import LateResult, ReceiptView, Tombstone, late_results, receipt, tombstones
from testigo.authority.read.sessions import SessionState, SessionView, sessions

__all__ = [
    "EVERY",
    "Cause",
    "Count",
    "Cursor",
    "Documents",
    "Failures",
    "Filter",
    "JobEnd",
    "JobSummary",
    "JobView",
    "LateResult",
    "Lineage",
    "LogLineView",
    "LogPage",
    "LogPlace",
    "Owner",
    "Page",
    "Pause",
    "ProgressView",
    "QueueView",
    "ReceiptView",
    "Related",
    "SessionState",
    "SessionView",
    "Tombstone",
    "by_key",
    "causes",
    "end",
    "job",
    "jobs",
    "late_results",
    "lineage",
    "log",
    "open_failures",
    "paused",
    "progress",
    "queues",
    "receipt",
    "sessions",
    "states",
    "tombstones",
]
