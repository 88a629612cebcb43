"""Every error that testigo raises: one tree, one code each, one remedy.

A refusal is raised; "nothing to claim" is a value. The HTTP status and the exit status of the
command line belong to the class, so that every door answers alike (spec model.md, *Errors*).

    Error
    ├── Invalid              the caller's input; nothing was done
    │   ├── PayloadInvalid, PayloadTooLarge
    │   ├── CursorInvalid, InHandler, SettingInvalid, RevisionRequired
    │   ├── EvidenceInvalid, ManifestInvalid, PageInvalid, ArtifactInvalid
    │   └── ConnectionUnsupported
    ├── Conflict             the world is not as the caller thought; nothing was done
    │   ├── KeyConflict, ActionIdCollision, ReceiptExpired
    │   ├── StateConflict, Terminal, RevisionMismatch
    │   ├── ScanEvidenceConflict, CollectionChanged
    │   ├── LeaseLost, EpochStale
    │   └── SessionReplaced, SessionBusy
    ├── Missing              NotFound, CursorTooOld
    ├── Denied               who asks may not: Unauthenticated, Forbidden
    ├── Unfulfilled          the job has ended, and not as whoever waits for it asked
    │   └── JobFailed, JobCancelled
    ├── Busy                 retryable: the same command may succeed later
    │   ├── KeyBusy, NotEnded, TooManyRequests, StoragePressure
    │   └── AuthorityUnavailable
    └── Broken               the installation needs a hand: SchemaMismatch, IsolationUnsupported,
                             EmbeddedUnusable, KeysUnusable, BlobsUnusable, BlobCorrupt, BackupInvalid,
                             StreamBroken, ProtocolBroken
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "ActionIdCollision",
    "ArtifactInvalid",
    "AuthorityUnavailable",
    "BackupInvalid",
    "BlobCorrupt",
    "BlobsUnusable",
    "Broken",
    "Busy",
    "CollectionChanged",
    "Conflict",
    "ConnectionUnsupported",
    "CursorInvalid",
    "CursorTooOld",
    "Denied",
    "EmbeddedUnusable",
    "EpochStale",
    "Error",
    "EvidenceInvalid",
    "Forbidden",
    "InHandler",
    "Invalid",
    "IsolationUnsupported",
    "JobCancelled",
    "JobFailed",
    "KeyBusy",
    "KeyConflict",
    "KeysUnusable",
    "LeaseLost",
    "ManifestInvalid",
    "Missing",
    "NotEnded",
    "NotFound",
    "PageInvalid",
    "PayloadInvalid",
    "PayloadTooLarge",
    "ProtocolBroken",
    "ReceiptExpired",
    "RevisionMismatch",
    "RevisionRequired",
    "ScanEvidenceConflict",
    "SchemaMismatch",
    "SessionBusy",
    "SessionReplaced",
    "SettingInvalid",
    "StateConflict",
    "StoragePressure",
    "StreamBroken",
    "Terminal",
    "TooManyRequests",
    "Unauthenticated",
    "Unfulfilled",
]


class Error(Exception):
    """The root of every error that testigo raises.

    `code` never changes between releases; `remedy` is a sentence that says what to do; `field`
    and `limit` name the part of the input that was refused and the bound that it broke; `facts`
    are further named values, safe to show (never a payload, never a secret).
    """

    code: ClassVar[str] = "ERROR"
    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 10
    remedy: str = "Report it: an error without a code of its own should not reach you."

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        remedy: str | None = None,
        http_status: int | None = None,
        exit_status: int | None = None,
    ) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code
        if remedy is not None:
            cls.remedy = remedy
        if http_status is not None:
            cls.http_status = http_status
        if exit_status is not None:
            cls.exit_status = exit_status

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        limit: str | None = None,
        remedy: str | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.limit = limit
        self.facts = facts
        if remedy is not None:
            self.remedy = remedy

    def __str__(self) -> str:
        where = f" [field: {self.field}]" if self.field else ""
        bound = f" [limit: {self.limit}]" if self.limit else ""
        return f"{self.code}: {self.message}{where}{bound} {self.remedy}"


class Invalid(
    Error,
    code="INVALID",
    http_status=422,
    exit_status=11,
    remedy="Correct the named field and send the command again.",
):
    """The input breaks a stated limit. Nothing was written."""


class PayloadInvalid(
    Invalid,
    code="PAYLOAD_INVALID",
    remedy="Send strict JSON: no NaN or infinity, no NUL, no lone surrogate, no duplicate key.",
):
    """A payload, output or checkpoint is not JSON that can be kept exactly."""


class PayloadTooLarge(
    Invalid,
    code="PAYLOAD_TOO_LARGE",
    http_status=413,
    remedy="Store the bytes as a blob and put the blob's digest in their place.",
):
    """A document is larger than what is kept inline (256 KiB)."""


class CursorInvalid(
    Invalid, code="CURSOR_INVALID", remedy="Start again without a cursor, or use one as it was returned."
):
    """A cursor was not made by the read it was given to."""


class InHandler(
    Invalid,
    code="IN_HANDLER",
    remedy="Submit what follows, with this job among its parents if need be; or do it where jobs are submitted from.",
):
    """A handler asked for what only the code around jobs may do: to wait for a job, to look at one or to cancel it."""


class SettingInvalid(
    Invalid,
    code="SETTING_INVALID",
    remedy="Correct or remove the setting where it was given.",
):
    """A setting of a file, a variable or the command line is not known, or out of range."""


class RevisionRequired(
    Invalid,
    code="REVISION_REQUIRED",
    http_status=428,
    remedy="Look at the job, and send the ETag that came with it as If-Match, or its revision as expected_revision.",
):
    """A request that changes a job says at which revision it was seen, so that nobody acts on what is past."""


class EvidenceInvalid(
    Invalid,
    code="EVIDENCE_INVALID",
    remedy="Correct or leave out what is named: nothing of this result was published.",
):
    """A finding, a report or a place in the source is not as evidence must be; `facts` may name the file
    and the pointer into it (spec D-14)."""


class ManifestInvalid(
    Invalid,
    code="MANIFEST_INVALID",
    remedy="Run the analysis again: the analyser's result is not what its manifest says, and nothing was published.",
):
    """A manifest, or the whole that its pages make, breaks a check: `facts` name the `check` (spec D-06, D-08)."""


class PageInvalid(
    Invalid,
    code="PAGE_INVALID",
    remedy="Run the analysis again: this page cannot be trusted, and nothing was published.",
):
    """A page of a sealed result breaks a check: `facts` name the `page`, the `ordinal` and the `check` (spec D-07)."""


class ArtifactInvalid(
    Invalid,
    code="ARTIFACT_INVALID",
    remedy="Have the artifact written again: what cannot be proved is neither published nor handed out.",
):
    """An artifact is not what was attested, or not a document that may be published (spec D-08, D-15)."""


class Conflict(
    Error,
    code="CONFLICT",
    http_status=409,
    exit_status=12,
    remedy="Read the current state and decide again.",
):
    """The world is not as the command assumed. Nothing was written."""


class KeyConflict(
    Conflict,
    code="KEY_CONFLICT",
    remedy="Use another key for other work, or resubmit exactly what was submitted first.",
):
    """A submission key already names a job that was asked for with other content (spec D-01)."""


class ActionIdCollision(
    Conflict,
    code="ACTION_ID_COLLISION",
    remedy="Use a new action id whenever the content of a command changes.",
):
    """An action id was used before with other content (spec B-04)."""


class ReceiptExpired(
    Conflict,
    code="RECEIPT_EXPIRED",
    http_status=410,
    remedy="Look at the job itself: the receipt is pruned, so the command was not executed again.",
):
    """The command is older than the receipts that are kept, so it is refused (spec P-04)."""


class StateConflict(Conflict, code="STATE_CONFLICT", remedy="Read the job's state; the command does not apply to it."):
    """The transition table has no such edge from the job's state."""


class Terminal(StateConflict, code="TERMINAL", remedy="A finished job never changes; reprocess it to run it again."):
    """The job has ended, and what has ended does not change (spec A-06)."""


class RevisionMismatch(
    Conflict,
    code="REVISION_MISMATCH",
    remedy="Look at the job as it is now, and decide again: it has changed since you saw it.",
):
    """The job is no longer as the caller saw it; `facts` name its state and revision now."""


class ScanEvidenceConflict(
    Conflict,
    code="SCAN_EVIDENCE_CONFLICT",
    remedy="Look at the analysis: it is published, and what people decided there stays. A new scan makes a new one.",
):
    """The analysis has findings or artifacts already, and evidence is inserted once (spec D-07, D-10)."""


class CollectionChanged(
    Conflict,
    code="COLLECTION_CHANGED",
    remedy="Load the list again from its first page: it has changed since you saw it.",
):
    """The findings are no longer those that the page or detail was read from; `facts` name the revision now
    (spec D-19)."""


class LeaseLost(Conflict, code="LEASE_LOST", remedy="Stop the work: another run owns the job, or nobody does."):
    """The caller does not hold the lease it names (spec D-03)."""


class EpochStale(LeaseLost, code="EPOCH_STALE", remedy="Stop the work: the job was granted again at a higher epoch."):
    """The caller's epoch is not the job's (spec P-15)."""


class SessionReplaced(
    Conflict,
    code="SESSION_REPLACED",
    remedy="Stop: another process took this agent's place. Open a new session to work again.",
):
    """The session is no longer open: it was replaced, closed or declared dead (spec P-16)."""


class SessionBusy(
    Conflict,
    code="SESSION_BUSY",
    remedy="Wait until the agent's live session ends, choose another name, or open with replace.",
):
    """The agent's name is exclusive and its session lives (spec P-21)."""


class Missing(Error, code="MISSING", http_status=404, exit_status=13, remedy="Check the id; it may have been pruned."):
    """What the command names is not there."""


class NotFound(Missing, code="NOT_FOUND"):
    """No such job, session, stream or parent."""


class CursorTooOld(
    Missing,
    code="CURSOR_TOO_OLD",
    http_status=410,
    remedy="Begin again from the stream's floor; what lies below it was pruned.",
):
    """The stream no longer holds the events after this cursor (spec B-10, P-27)."""


class Denied(
    Error,
    code="DENIED",
    http_status=403,
    exit_status=17,
    remedy="Ask an administrator of this installation.",
):
    """Whoever asks may not do this. Nothing was done."""


class Unauthenticated(
    Denied,
    code="UNAUTHENTICATED",
    http_status=401,
    remedy="Log in, or send a token: `testigo user add` and `testigo token create` make them.",
):
    """It is not known who asks: no login and no token that is valid, or a password that is wrong."""


class Forbidden(
    Denied, code="FORBIDDEN", remedy="Ask an administrator for a role that may do this: `testigo user add --help`."
):
    """Who asks is known, and their role may not do this."""


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


class Broken(
    Error,
    code="BROKEN",
    http_status=500,
    exit_status=15,
    remedy="Follow the message; the installation needs a hand.",
):
    """The installation, not the command, is at fault."""


class SchemaMismatch(
    Broken, code="SCHEMA_MISMATCH", remedy="Run the migrations: `testigo migrate`, or Database.migrate()."
):
    """The database's schema and this code do not fit each other."""


class IsolationUnsupported(
    Broken,
    code="ISOLATION_UNSUPPORTED",
    remedy="ALTER ROLE <role> SET default_transaction_isolation = 'read committed';",
):
    """The role's default transaction isolation is not READ COMMITTED (spec P-02)."""


class EmbeddedUnusable(Broken, code="EMBEDDED_UNUSABLE"):
    """The embedded server cannot be started on this directory or machine."""


class KeysUnusable(
    Broken,
    code="KEYS_UNUSABLE",
    remedy="Make the folder 0700 and its files 0600, both owned by the account that runs testigo and no symlinks.",
):
    """The folder of keys cannot be trusted or written: others may read it, or it is not ours."""


class BlobsUnusable(
    Broken, code="BLOBS_UNUSABLE", remedy="See that the folder of blobs is writable and its disk has room."
):
    """The folder of blobs cannot be read or written. No part of a blob became visible."""


class BlobCorrupt(Broken, code="BLOB_CORRUPT", remedy="Restore the blob from a backup; its bytes have changed."):
    """A blob's bytes do not have the digest that names them."""


class BackupInvalid(
    Broken,
    code="BACKUP_INVALID",
    remedy="Restore another backup: this one is not what was written. Nothing was restored.",
):
    """A backup lacks something that its manifest tells of, or its bytes have changed (spec D-22)."""


class StreamBroken(
    Broken,
    code="STREAM_BROKEN",
    remedy="Stop what reads this stream and restore the database: events were removed by other means than pruning.",
):
    """A stream does not hold every event between its floor and its head (spec B-03)."""


class ProtocolBroken(
    Broken,
    code="PROTOCOL_BROKEN",
    remedy="See that no handler reads, writes or closes descriptors that it did not open.",
):
    """A keeper and its runner do not understand each other: what came is no frame, or no message."""


class ConnectionUnsupported(
    Invalid,
    code="CONNECTION_UNSUPPORTED",
    remedy="Pass a SQLAlchemy Session or Connection (sync or async), a psycopg 3 connection, or Django's.",
):
    """The caller's connection is of a kind that cannot be used safely."""
