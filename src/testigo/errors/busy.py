"""A passing hindrance: the same command may succeed later."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "AuthorityUnavailable",
    "Busy",
    "KeyBusy",
    "NotEnded",
    "StoragePressure",
    "TooManyRequests",
]


class Busy(Error, code="BUSY", http_status=503, exit_status=14, remedy="Send the same command again in a moment."):
    """A passing hindrance: the same command, with the same action id, may succeed later."""


class KeyBusy(Busy, code="KEY_BUSY", remedy="Another transaction holds this key; send the same command again."):
    """A wait for a key, receipt or row took longer than its lock timeout (spec P-08)."""


class TooManyRequests(
    Busy, code="TOO_MANY_REQUESTS", http_status=429, remedy="Wait as long as Retry-After says, and send fewer."
):
    """More was asked in a short time than one caller is answered, or a password was tried too often."""


class StoragePressure(
    Busy,
    code="STORAGE_PRESSURE",
    remedy="Let results that wait be published, or give the spool more room; then send the same request again.",
):
    """The spool has no room: the work is refused, for no result that nobody has acknowledged makes way (spec D-12)."""


class NotEnded(
    Busy, TimeoutError, code="NOT_ENDED", remedy="Wait longer, or see whether a worker runs: the job goes on as before."
):
    """The job that is waited for did not end in the time that was given. It is a `TimeoutError` as well."""


class AuthorityUnavailable(
    Busy,
    code="AUTHORITY_UNAVAILABLE",
    remedy="Check that PostgreSQL runs and can be reached; the command may be sent again unchanged.",
):
    """The database did not answer, however often it was tried; whether it acted is not known."""
