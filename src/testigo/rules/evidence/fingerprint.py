"""Who a finding is: the identity that survives shifted lines, reordered results and publishing again.

Every fingerprint is SHA-256 over RFC 8785 bytes, as all of testigo's identities are (spec P-06, D-18, D-24; field
case R83). The tool's own are taken where it gives some and no two differing results share one; else it is
computed from the rule, the canonical path and what the lines say, white space made even. Places that are equal in
all of this are numbered in the order of their lines. `fingerprint_vectors.json`, shipped beside this module,
publishes what any implementation must reach.

What is hashed here must have been redacted: a digest over a short secret tells it to whoever tries all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from testigo.rules.identity import digest

__all__ = ["computed", "context", "given"]

_DIGITS = re.compile(r"[0-9]+")


def context(snippet: str | None, message: str) -> str:
    """What the lines say, each run of white space one blank; without lines, the message with `#` for its numbers."""
    lines = " ".join((snippet or "").split())
    return lines or " ".join(_DIGITS.sub("#", message).split())


def computed(analyser: str, rule: str, path: str | None, context: str, n: int) -> str:
    """The fingerprint of the `n`th place, from 0 and in the order of lines, that is equal in all the rest."""
    return digest("finding", {"analyser": analyser, "rule": rule, "path": path, "context": context, "n": n})


def given(analyser: str, rule: str, path: str | None, parts: Mapping[str, str]) -> str:
    """The fingerprint that is made of a tool's own `parts`, which most tools make unique in one file only."""
    return digest("finding.given", {"analyser": analyser, "rule": rule, "path": path, "parts": dict(parts)})
