"""A finding as it is sealed, sent, published and exported: one value, one canonical form, one order (spec D-14).

Everything in it is within its limits, fit for any store and any terminal, and redacted: `sealing` makes it so.
What comes over the wire is read strictly, and refused by field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from testigo.errors import EvidenceInvalid
from testigo.rules.evidence.paths import why_not_canonical
from testigo.rules.evidence.severity import Level, Severity
from testigo.rules.identity import canonical
from testigo.settings import EVIDENCE, LIMITS

__all__ = ["FINGERPRINT", "Finding", "FingerprintBy", "Order"]

FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNFIT_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

Order = tuple[str, int, int, str, str]
"""What a result is ordered by: path, line, column, rule, fingerprint; text by code points."""


class FingerprintBy(StrEnum):
    """Who gave a finding its identity."""

    TOOL = "tool"
    """It is made of what the tool itself gave."""
    COMPUTED = "computed"
    """It is made of rule, path and what the lines say."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of one analyser. Lines and columns count from 1; what is not known is None.

    `suppressed` says that the source itself asks not to be told of it, as by a comment; it is kept as a fact and
    decides nothing. `metadata` are further named texts. Made, it is not yet checked: see `check`.
    """

    analyser: str
    rule: str
    severity: Severity
    level: Level
    message: str
    fingerprint: str
    fingerprint_by: FingerprintBy
    rule_name: str | None = None
    path: str | None = None
    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    snippet: str | None = None
    suppressed: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raise `EvidenceInvalid` with the field and its limit for the first thing that is not as it must be."""
        _line(self.analyser, LIMITS.name_chars_max, "analyser")
        _line(self.rule, EVIDENCE.rule_chars_max, "rule")
        if self.rule_name is not None:
            _line(self.rule_name, EVIDENCE.rule_chars_max, "rule_name")
        if self.path is not None and (fault := why_not_canonical(self.path)):
            raise EvidenceInvalid("it is no canonical path", field="path", reason=str(fault))
        self._check_place()
        _text(self.message, EVIDENCE.message_bytes_max, "message")
        if self.snippet is not None:
            _text(self.snippet, EVIDENCE.snippet_bytes_max, "snippet")
        if not FINGERPRINT.fullmatch(str(self.fingerprint)):
            raise EvidenceInvalid("a digest is needed", field="fingerprint", limit="sha256: and 64 hex digits")
        if not isinstance(self.suppressed, bool):
            raise EvidenceInvalid("true or false is needed", field="suppressed")
        self._check_metadata()

    def to_json(self) -> dict[str, Any]:
        """The members of its JSON object, all of them, in the order of the wire's description."""
        return {
            "analyser": self.analyser,
            "rule": self.rule,
            "rule_name": self.rule_name,
            "severity": self.severity,
            "level": self.level,
            "path": self.path,
            "line": self.line,
            "end_line": self.end_line,
            "column": self.column,
            "end_column": self.end_column,
            "message": self.message,
            "snippet": self.snippet,
            "fingerprint": self.fingerprint,
            "fingerprint_by": self.fingerprint_by,
            "suppressed": self.suppressed,
            "metadata": dict(self.metadata),
        }

    def canonical(self) -> bytes:
        """Its RFC 8785 bytes, at most 64 KiB: what is hashed, counted and compared. Else `EvidenceInvalid`."""
        form = canonical(self.to_json())
        if len(form) > EVIDENCE.finding_bytes_max:
            raise EvidenceInvalid(
                f"its canonical form takes {len(form)} bytes",
                field="finding",
                limit=f"{EVIDENCE.finding_bytes_max} bytes",
            )
        return form

    def order(self) -> Order:
        """Its place in a result."""
        return (self.path or "", self.line or 0, self.column or 0, self.rule, self.fingerprint)

    @classmethod
    def from_json(cls, value: object) -> Finding:
        """The finding that a JSON object is: every member there, none besides, each checked.

        Raises `EvidenceInvalid` naming the member.
        """
        if not isinstance(value, dict):
            raise EvidenceInvalid("an object is needed", field="finding")
        if value.keys() != _MEMBERS:
            missing, unknown = sorted(_MEMBERS - value.keys()), sorted(str(key) for key in value.keys() - _MEMBERS)
            at = (missing or unknown)[0][:40]
            raise EvidenceInvalid("the member is missing" if missing else "no such member is known", field=at)
        members = {
            **value,
            "severity": _word(value["severity"], _SEVERITIES, "severity"),
            "level": _word(value["level"], _LEVELS, "level"),
            "fingerprint_by": _word(value["fingerprint_by"], _GIVERS, "fingerprint_by"),
        }
        finding = object.__new__(cls)
        for name, put in _SLOTS:  # as a frozen class does it, in a fifth of the time: pages are read in a transaction
            put(finding, members[name])
        finding.check()
        return finding

    def _check_place(self) -> None:
        line, end_line, column, end_column = self.line, self.end_line, self.column, self.end_column
        _position(line, "line")
        _position(end_line, "end_line")
        _position(column, "column")
        _position(end_column, "end_column")
        if line is None and not (end_line is column is end_column is None):
            raise EvidenceInvalid("without a line there is no end and no column", field="line")
        if line is not None and end_line is not None and end_line < line:
            raise EvidenceInvalid("it ends before it begins", field="end_line")
        if end_column is not None and (column is None or (end_line in (None, line) and end_column < column)):
            raise EvidenceInvalid("it ends before it begins", field="end_column")

    def _check_metadata(self) -> None:
        if not isinstance(self.metadata, Mapping):
            raise EvidenceInvalid("an object is needed", field="metadata")
        if len(self.metadata) > EVIDENCE.metadata_max:
            raise EvidenceInvalid(
                f"it has {len(self.metadata)} members", field="metadata", limit=f"{EVIDENCE.metadata_max} members"
            )
        for name, text in self.metadata.items():
            _line(name, LIMITS.name_chars_max, "metadata")
            _text(text, EVIDENCE.metadata_bytes_max, f"metadata.{name}", empty=True)


_SLOTS = tuple((member.name, getattr(Finding, member.name).__set__) for member in fields(Finding))
_MEMBERS = frozenset(name for name, _ in _SLOTS)
_SEVERITIES = {str(word): word for word in Severity}
_LEVELS = {str(word): word for word in Level}
_GIVERS = {str(word): word for word in FingerprintBy}


def _line(value: object, chars_max: int, at: str) -> None:
    """One line that names something: not empty, not bordered by white space."""
    if not isinstance(value, str):
        raise EvidenceInvalid("text is needed", field=at)
    if not value or value != value.strip():
        raise EvidenceInvalid("it is empty, or begins or ends with white space", field=at)
    if len(value) > chars_max:
        raise EvidenceInvalid(f"it is {len(value)} characters long", field=at, limit=f"{chars_max} characters")
    if found := _UNFIT_LINE.search(value):
        raise EvidenceInvalid(f"it holds the character U+{ord(found[0]):04X}", field=at)


def _text(value: object, bytes_max: int, at: str, *, empty: bool = False) -> None:
    """Fit text of several lines."""
    if not isinstance(value, str):
        raise EvidenceInvalid("text is needed", field=at)
    if not value and not empty:
        raise EvidenceInvalid("it is empty", field=at)
    if found := _UNFIT.search(value):
        raise EvidenceInvalid(f"it holds the character U+{ord(found[0]):04X}", field=at)
    if len(value) * 4 > bytes_max and len(value.encode()) > bytes_max:
        raise EvidenceInvalid(f"it takes {len(value.encode())} bytes", field=at, limit=f"{bytes_max} bytes of UTF-8")


def _position(value: object, at: str) -> None:
    if value is None:
        return
    if type(value) is not int or not 1 <= value <= EVIDENCE.position_max:
        raise EvidenceInvalid("a whole number from 1 on is needed", field=at, limit=f"1 to {EVIDENCE.position_max}")


def _word(value: object, among: Mapping[str, StrEnum], at: str) -> StrEnum:
    found = among.get(value) if isinstance(value, str) else None
    if found is None:
        raise EvidenceInvalid("it is none of the words known here", field=at, limit=", ".join(among))
    return found
