"""What a request says of itself: the key under which it may be sent again, and the revision that it has seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Header

from testigo.authority.actions import JobId
from testigo.errors import Invalid, RevisionRequired
from testigo.rules import fields
from testigo.settings import LIMITS

__all__ = ["IfMatch", "Key", "KeyIfAny", "etag", "expected_of"]

_ETAG = re.compile(r'"([1-9][0-9]{0,9})"')

_KEY = Header(
    alias="Idempotency-Key",
    min_length=1,
    max_length=LIMITS.name_chars_max,
    description="Names this request: sent again under the same key it is done once, and answered alike.",
    examples=["order-17"],
)


def _checked(key: Annotated[str, _KEY]) -> str:
    return fields.name(key, field="Idempotency-Key")


def _checked_if_any(key: Annotated[str | None, _KEY] = None) -> str | None:
    return None if key is None else fields.name(key, field="Idempotency-Key")


Key = Annotated[str, Depends(_checked)]
"""The parameter of a handler whose requests must be named."""

KeyIfAny = Annotated[str | None, Depends(_checked_if_any)]
"""The parameter of a handler whose requests may be named."""

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=200,
        description="The ETag of the job as it was seen, or * for whatever it is now.",
        examples=['"7"'],
    ),
]
"""The parameter of a handler that changes a job."""


def etag(revision: int) -> str:
    """The ETag of a job at this revision."""
    return f'"{revision}"'


def expected_of(job_id: JobId, if_match: str | None, expected_revision: int | None) -> Mapping[JobId, int]:
    """The revision at which the caller has seen the job; none where they said that any will do.

    Raises `RevisionRequired` where nothing was said, and `Invalid` for what is no ETag of a job, or for a header
    and a body that disagree.
    """
    if if_match is None and expected_revision is None:
        raise RevisionRequired("Which revision of the job was seen is not told.", field="If-Match")
    if if_match is None or (if_match == "*" and expected_revision is not None):
        assert expected_revision is not None
        return {job_id: expected_revision}
    if if_match == "*":
        return {}
    found = _ETAG.fullmatch(if_match)
    if found is None:
        raise Invalid("That is no ETag of a job.", field="If-Match", limit='one revision in quotes, such as "7", or *')
    if expected_revision not in (None, int(found[1])):
        raise Invalid("If-Match and expected_revision name two revisions.", field="expected_revision")
    return {job_id: int(found[1])}
