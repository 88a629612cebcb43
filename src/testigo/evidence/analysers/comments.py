"""Comments by which a source asks not to be told of a finding: it is found all the same, and says so (spec D-14).

Programs are told to take no notice of such comments, so they do not say either which findings they would have left
out. What each asks for is read from the lines, strictly: where it cannot be told that a comment is about a finding, the
finding is not suppressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["IN_SOURCE", "asks"]

IN_SOURCE = {"suppression.kind": "inSource"}
"""The metadata of such a finding, as SARIF has them."""

_BETWEEN = re.compile(r"[\s,]+")


def asks(comment: re.Pattern[str], lines: Iterable[str], *names: str) -> bool:
    """Whether a comment in `lines` is about all rules, or about one of these names.

    The group `of` of the expression is what the comment names; without it, it names nothing and is about all.
    """
    for line in lines:
        for found in comment.finditer(line):
            of = found.groupdict().get("of")
            if of is None or not set(names).isdisjoint(_BETWEEN.split(of)):
                return True
    return False
