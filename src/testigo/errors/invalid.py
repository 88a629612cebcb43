"""The caller's input breaks a stated limit: nothing was done."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "ArtifactInvalid",
    "ConnectionUnsupported",
    "CursorInvalid",
    "EvidenceInvalid",
    "InHandler",
    "Invalid",
    "ManifestInvalid",
    "PageInvalid",
    "PayloadInvalid",
    "PayloadTooLarge",
    "RevisionRequired",
    "SettingInvalid",
]


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


class ConnectionUnsupported(
    Invalid,
    code="CONNECTION_UNSUPPORTED",
    remedy="Pass a SQLAlchemy Session or Connection (sync or async), a psycopg 3 connection, or Django's.",
):
    """The caller's connection is of a kind that cannot be used safely."""
