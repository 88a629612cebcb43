"""The bounds of a batch of ids, alike for every command that takes one."""

from __future__ import annotations

from collections.abc import Sequence

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.settings import LIMITS

__all__ = ["check_batch"]


def check_batch(ids: Sequence[str], field: str) -> None:
    """Refuse an empty batch, one that is too large, a repeated id, and what is no id."""
    if not 1 <= len(ids) <= LIMITS.batch_max:
        raise Invalid(f"A batch of {len(ids)} ids.", field=field, limit=f"1 to {LIMITS.batch_max} ids")
    for at, given in enumerate(ids):
        fields.must_be_id(given, field=f"{field}[{at}]")
    if len(set(ids)) < len(ids):
        raise Invalid("An id occurs twice in the batch.", field=field, remedy="Name each job once.")
