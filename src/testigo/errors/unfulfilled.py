"""The job has ended, and not as whoever waits for it asked."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "JobCancelled",
    "JobFailed",
    "Unfulfilled",
]


class Unfulfilled(
    Error,
    code="UNFULFILLED",
    http_status=409,
    exit_status=16,
    remedy="Look at the job's history; reprocess it if it shall run again.",
):
    """The job that was waited for has ended without an output."""

    @property
    def job_id(self) -> str:
        """The job."""
        return str(self.facts["job"])


class JobFailed(Unfulfilled, code="JOB_FAILED"):
    """The job failed for good."""

    @property
    def error_code(self) -> str:
        """The code of the last recorded failure; where the job did not fail but was given up, why."""
        return str(self.facts["error_code"])

    @property
    def error_message(self) -> str:
        """The message of the last recorded failure; empty where the job did not fail but was given up."""
        return str(self.facts["error_message"])


class JobCancelled(Unfulfilled, code="JOB_CANCELLED"):
    """The job was cancelled, or another took its place: its `facts` then name the `successor`."""
