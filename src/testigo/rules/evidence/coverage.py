"""What was looked at: the files in scope, minus those that an analyser skipped or failed (spec D-24).

A part of an analysis has a coverage, so has an analyser over all its parts, and so has the analysis over all the
analysers that it was asked for. One that is missing makes it incomplete: silence is no evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from testigo.errors import EvidenceInvalid
from testigo.rules.discreet import discreet
from testigo.rules.evidence.paths import why_not_canonical
from testigo.rules.evidence.redaction import redact
from testigo.rules.text import tidy
from testigo.settings import EVIDENCE

__all__ = ["Coverage", "Outcome", "Uncovered", "together"]

_REASON_BYTES = 400
_COUNTS = ("in_scope", "analysed", "skipped_total", "failed_total")
_LISTS = ("skipped", "failed")


class Outcome(StrEnum):
    """How an analyser's run ended, by its own account and by ours."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class Uncovered(NamedTuple):
    """A file that was not analysed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many files were in scope, how many of them analysed, and which were not: at most 1,000 of each are named."""

    in_scope: int = 0
    skipped_total: int = 0
    failed_total: int = 0
    skipped: tuple[Uncovered, ...] = ()
    failed: tuple[Uncovered, ...] = ()

    @property
    def analysed(self) -> int:
        """Files that were looked at."""
        return self.in_scope - self.skipped_total - self.failed_total

    @property
    def whole(self) -> bool:
        """Whether every file in scope was analysed."""
        return not self.skipped_total and not self.failed_total

    @classmethod
    def of(cls, scope: Iterable[str], *, skipped: Mapping[str, str], failed: Mapping[str, str]) -> Coverage:
        """The coverage of the canonical paths in `scope`; `skipped` and `failed` name reasons by path.

        A file that is both failed. What an analyser says of files outside the scope says nothing of the scope.
        """
        files = set(scope)
        lost = {path: why for path, why in failed.items() if path in files}
        left = {path: why for path, why in skipped.items() if path in files and path not in lost}
        return cls(len(files), len(left), len(lost), _named(left), _named(lost))

    def to_json(self) -> dict[str, Any]:
        """The members of its JSON object."""
        return {
            "in_scope": self.in_scope,
            "analysed": self.analysed,
            "skipped_total": self.skipped_total,
            "failed_total": self.failed_total,
            "skipped": [one._asdict() for one in self.skipped],
            "failed": [one._asdict() for one in self.failed],
        }

    @classmethod
    def from_json(cls, value: object) -> Coverage:
        """The coverage that a JSON object tells, its sums checked. Raises `EvidenceInvalid` naming the member."""
        if not isinstance(value, dict) or value.keys() != {*_COUNTS, *_LISTS}:
            raise EvidenceInvalid(f"an object of {', '.join((*_COUNTS, *_LISTS))} is needed", field="coverage")
        for name in _COUNTS:
            if type(value[name]) is not int or not 0 <= value[name] <= EVIDENCE.position_max:
                raise EvidenceInvalid("a whole number from 0 on is needed", field=f"coverage.{name}")
        read = cls(
            value["in_scope"],
            value["skipped_total"],
            value["failed_total"],
            _read(value["skipped"], "coverage.skipped"),
            _read(value["failed"], "coverage.failed"),
        )
        if read.analysed != value["analysed"]:
            raise EvidenceInvalid("the files do not add up to those in scope", field="coverage.analysed")
        for name, named, total in (
            ("skipped", read.skipped, read.skipped_total),
            ("failed", read.failed, read.failed_total),
        ):
            if len(named) != min(total, EVIDENCE.uncovered_max):
                raise EvidenceInvalid("it does not name as many files as were counted", field=f"coverage.{name}")
        return read


def together(parts: Iterable[Coverage]) -> Coverage:
    """The coverage of parts that have no file in common."""
    all_parts = list(parts)
    return Coverage(
        sum(part.in_scope for part in all_parts),
        sum(part.skipped_total for part in all_parts),
        sum(part.failed_total for part in all_parts),
        _first(one for part in all_parts for one in part.skipped),
        _first(one for part in all_parts for one in part.failed),
    )


def _named(reasons: Mapping[str, str]) -> tuple[Uncovered, ...]:
    return _first(Uncovered(redact(path), _reason(why)) for path, why in reasons.items())


def _first(files: Iterable[Uncovered]) -> tuple[Uncovered, ...]:
    return tuple(sorted(files)[: EVIDENCE.uncovered_max])


def _reason(why: str) -> str:
    return discreet(" ".join(why.split()), bytes_max=_REASON_BYTES) or "no reason given"


def _read(value: object, at: str) -> tuple[Uncovered, ...]:
    if not isinstance(value, list) or len(value) > EVIDENCE.uncovered_max:
        raise EvidenceInvalid("a list is needed", field=at, limit=f"{EVIDENCE.uncovered_max} files")
    read = []
    for n, one in enumerate(value):
        if not isinstance(one, dict) or one.keys() != {"path", "reason"}:
            raise EvidenceInvalid("an object of path and reason is needed", field=f"{at}[{n}]")
        path, why = one["path"], one["reason"]
        if fault := why_not_canonical(path):
            raise EvidenceInvalid("it is no canonical path", field=f"{at}[{n}].path", reason=str(fault))
        if not isinstance(why, str) or not why or tidy(why, bytes_max=_REASON_BYTES) != why:
            raise EvidenceInvalid(
                "fit text is needed", field=f"{at}[{n}].reason", limit=f"1 to {_REASON_BYTES} bytes of UTF-8"
            )
        read.append(Uncovered(path, why))
    if read != sorted(read):
        raise EvidenceInvalid("the files are not in order", field=at)
    return tuple(read)
