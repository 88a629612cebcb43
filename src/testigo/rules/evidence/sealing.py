"""From what an analyser said to the findings of its result: the one place through which hostile text comes in.

Text is made fit, redacted and cut to its limits, in this order, so that no cut hides a secret from redaction. Then
each finding is given its fingerprint, what was said twice is said once, and all are put in order (spec D-05, D-14,
D-24; field cases R45, R76, R83).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from testigo.rules.evidence import fingerprint
from testigo.rules.evidence.assignments import is_secret_name
from testigo.rules.evidence.finding import Finding, FingerprintBy
from testigo.rules.evidence.redaction import hide_named, is_clean, redact
from testigo.rules.evidence.severity import Level, Severity
from testigo.rules.identity import canonical
from testigo.rules.text import tidy
from testigo.settings import EVIDENCE, LIMITS

__all__ = ["UNNAMED", "Draft", "redacted", "sealed"]

UNNAMED = "unnamed"
"""The rule of a finding whose tool named none."""

_ALL = 2**62
"""More bytes than any text has: tidied, and not cut."""
_METADATA_BYTES = 12 * 1024
"""What the metadata of one finding may take together; the rest is left out, in the order of their names."""
_APART = "\n\x00\n"
"""Between texts that are looked at together: no fit text has a NUL, so none goes on in the next."""
_SURE_BYTES = 8 * 1024
"""A message and a snippet of so many bytes each always fit, however many of their characters are escaped."""
_REST_BYTES = 8 * 1024
"""What the members without bounds of their own, and the names of all, take at most."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What an analyser said of one place, however it said it; `path` is canonical (see `paths`).

    `parts` are the fingerprints that the tool itself gave, by their names. Positions that make no sense are dropped.
    """

    analyser: str
    rule: str
    severity: Severity
    level: Level
    message: str
    rule_name: str | None = None
    path: str | None = None
    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    snippet: str | None = None
    suppressed: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)


def sealed(drafts: Iterable[Draft]) -> list[Finding]:
    """The findings of one result, in their order, each fingerprint of an analyser once.

    The same drafts in any order give the same findings, and drafts that differ in their lines alone give the same
    fingerprints. What is said twice is said once; findings of two results may still be equal where they have no
    path. Raises `EvidenceInvalid` for a draft whose analyser, path, severity or level is not as it must be.
    """
    distinct = sorted({_place(finding, given): (finding, given) for finding, given in map(_fit, drafts)}.items())
    uses = Counter(given for _, (_, given) in distinct)
    seen: Counter[tuple[str, str, str | None, str]] = Counter()
    findings = []
    for _, (finding, given) in distinct:
        if given and uses[given] == 1:
            named = replace(finding, fingerprint=given, fingerprint_by=FingerprintBy.TOOL)
        else:
            says = fingerprint.context(finding.snippet, finding.message)
            same = (finding.analyser, finding.rule, finding.path, says)
            named = replace(finding, fingerprint=fingerprint.computed(*same, seen[same]))
            seen[same] += 1
        named.check()
        findings.append(named)
    return sorted(findings, key=Finding.order)


def redacted(finding: Finding) -> Finding:
    """The finding without the secrets that are known here, as it is made once more before insertion (spec D-14).

    It has been checked. Its fingerprint stays; a finding that was sealed here comes back as it is.
    """
    named = finding.metadata
    repeated = (finding.rule, finding.rule_name or "", finding.path or "", *named, *named.values())
    said = _APART.join((finding.message, finding.snippet or ""))
    if all(map(_is_clean, repeated)) and not any(map(_names_a_secret, named)) and is_clean(said):
        return finding
    clean = _bounded(replace(finding, **_texts(finding)))
    return finding if clean == finding else clean


_is_clean = lru_cache(2_048)(is_clean)
"""Of what many findings of a result have in common: to look once at such takes a third off."""
_names_a_secret = lru_cache(2_048)(is_secret_name)


def _fit(draft: Draft) -> tuple[Finding, str]:
    """The draft as a finding that lacks its fingerprint alone, and the one that its tool gave, or nothing."""
    finding = _bounded(
        Finding(
            analyser=draft.analyser,
            severity=draft.severity,
            level=draft.level,
            fingerprint="",
            fingerprint_by=FingerprintBy.COMPUTED,
            suppressed=draft.suppressed,
            **_texts(draft),
            **_positions(draft),
        )
    )
    parts = {str(name): redact(_fit_text(part)) for name, part in draft.parts.items()}
    return finding, fingerprint.given(finding.analyser, finding.rule, finding.path, parts) if parts else ""


def _texts(said: Draft | Finding) -> dict[str, Any]:
    """Every text of a finding: fit, redacted, and within its own limit."""
    texts = [_fit_text(text or "") for text in (said.rule, said.rule_name, said.path, said.message, said.snippet)]
    names = [_fit_text(name) for name in sorted(said.metadata)]
    values = [_fit_text(said.metadata[name]) for name in sorted(said.metadata)]
    if is_clean(_APART.join((*texts, *names, *values))):  # one look is quicker than ten
        rule, rule_name, path, message, snippet = texts
    else:
        rule, rule_name, path, message, snippet = map(redact, texts)
        names, values = list(map(redact, names)), list(map(redact, values))
    rule = _line(rule, EVIDENCE.rule_chars_max) or UNNAMED
    return {
        "rule": rule,
        "rule_name": _line(rule_name, EVIDENCE.rule_chars_max) or None,
        "path": None if said.path is None else path,
        "message": _cut(message, EVIDENCE.message_bytes_max) or rule,
        "snippet": _cut(snippet, EVIDENCE.snippet_bytes_max) or None,
        "metadata": _metadata(zip(names, values, strict=True)),
    }


def _metadata(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    kept: dict[str, str] = {}
    room = _METADATA_BYTES
    for name, text in named:
        key = _line(name, LIMITS.name_chars_max)
        value = tidy(hide_named(key, text), bytes_max=EVIDENCE.metadata_bytes_max)
        room -= len(key.encode()) + len(value.encode())
        if len(kept) == EVIDENCE.metadata_max or room < 0:
            break
        if key:
            kept[key] = value
    return kept


def _positions(draft: Draft) -> dict[str, Any]:
    """Where it is, as far as that makes sense: from 1 on, with a beginning, and not ending before it begins."""
    line, end_line, column, end_column = (
        at if type(at) is int and 1 <= at <= EVIDENCE.position_max else None
        for at in (draft.line, draft.end_line, draft.column, draft.end_column)
    )
    if line is None:
        end_line = column = None
    elif end_line is not None and end_line < line:
        end_line = end_column = None
    if column is None or (end_column is not None and end_line in (None, line) and end_column < column):
        end_column = None
    return {"line": line, "end_line": end_line, "column": column, "end_column": end_column}


def _bounded(finding: Finding) -> Finding:
    """The finding within the limit of the whole: its metadata go first, then text beyond what always fits."""
    if _size_at_most(finding) <= EVIDENCE.finding_bytes_max or len(_bytes(finding)) <= EVIDENCE.finding_bytes_max:
        return finding
    bare = replace(finding, metadata={})
    if len(_bytes(bare)) <= EVIDENCE.finding_bytes_max:
        return bare
    snippet = None if bare.snippet is None else tidy(bare.snippet, bytes_max=_SURE_BYTES)
    return replace(bare, message=tidy(bare.message, bytes_max=_SURE_BYTES), snippet=snippet)


def _size_at_most(finding: Finding) -> int:
    """A bound on the canonical form that is quick to find: no character takes more than four bytes."""
    said = len(finding.message) + len(finding.snippet or "") + len(finding.path or "")
    return 4 * (said + sum(len(name) + len(text) for name, text in finding.metadata.items())) + _REST_BYTES


def _bytes(finding: Finding) -> bytes:
    return canonical(finding.to_json())


def _place(finding: Finding, given: str) -> tuple[object, ...]:
    """What findings are told apart and ordered by while they have no fingerprint; lines are numbers here."""
    numbers = (finding.line or 0, finding.column or 0, finding.end_line or 0, finding.end_column or 0)
    rest = replace(finding, line=None, column=None, end_line=None, end_column=None)
    return (finding.path or "", *numbers, finding.rule, _bytes(rest), given)


def _line(text: str, chars_max: int) -> str:
    """One line of at most so many characters; it may be empty."""
    return " ".join(text.split())[:chars_max].strip()


def _cut(text: str, bytes_max: int) -> str:
    """Text of several lines within its limit; empty where it is blank."""
    return tidy(text, bytes_max=bytes_max) if text and not text.isspace() else ""


def _fit_text(text: object) -> str:
    return tidy(text, bytes_max=_ALL)
