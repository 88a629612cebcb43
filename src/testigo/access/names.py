"""Names of users and tokens: one spelling each, so that no two look alike in the audit."""

from __future__ import annotations

import re

from testigo.errors import Invalid
from testigo.rules import fields

__all__ = ["spelled"]

_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,99}")
_LIMIT = "1 to 100 of a-z, 0-9 and . _ @ + -, the first a letter or a digit"


def spelled(name: object, *, field: str) -> str:
    """The name as it is kept, in lower case. Raises `Invalid` for one that is no name of a user or token."""
    text = fields.name(name, field=field).lower()
    if not _NAME.fullmatch(text):
        raise Invalid("it is no name of a user or token", field=field, limit=_LIMIT)
    return text
