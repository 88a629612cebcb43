"""The end of a scan: one object for programs, sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from testigo.cli.analyses import becauses, left_out
from testigo.cli.tables import Column, console, print_table
from testigo.rules.evidence.coverage import together
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.severity import SEVERITIES

if TYPE_CHECKING:
    from testigo.evidence.listing import AnalysisDetail
    from testigo.evidence.model import PartView
    from testigo.scan.scope import Scope

__all__ = ["answer", "tell"]

_STYLES = {Verdict.PASSED: "bold green", Verdict.FAILED: "bold red", Verdict.INCOMPLETE: "bold yellow"}


def answer(detail: AnalysisDetail, found: Scope, seconds: float) -> dict[str, object]:
    """Everything that was counted; `verdict` is null for an analysis without evidence, whose `reason` says why."""
    view, gate = detail.view, detail.gate
    return {
        "analysis": view.id,
        "project": view.project,
        "n": view.n,
        "state": str(view.state),
        "reason": view.reason,
        "source": view.source,
        "scope": view.scope,
        "seconds": round(seconds, 2),
        "files": len(found.files),
        "left_out": dict(found.left_out),
        "by_git": found.by_git,
        "findings": view.findings,
        "new": _new(detail),
        "artifacts": view.artifacts,
        "counts": {str(severity): view.counts.get(severity, 0) for severity in SEVERITIES},
        "verdict": str(gate.verdict) if view.persisted else None,
        "reasons": [reason._asdict() for reason in gate.reasons] if view.persisted else [],
        "not_asked": detail.not_asked,
        "analysers": [_told(name, parts) for name, parts in _by_analyser(detail).items()],
    }


def tell(detail: AnalysisDetail, found: Scope, seconds: float) -> None:
    """What was looked at, what was found, and what the gate says."""
    view, gate = detail.view, detail.gate
    out = console()
    left = left_out(found.left_out)
    scope = f"{_number(len(found.files), 'file')} in scope"
    scope += f", of {found.root} only {found.only}" if found.only else ""
    scope += f", left out: {left}" if left else ""
    out.print(f"{view.project}, analysis {view.n}: {view.state} after {seconds:.0f} s; {scope}.")
    if not view.persisted:
        out.print(view.reason or "Nothing was published.", style="bold red", markup=False)
        return
    print()
    columns: list[Column[dict[str, object]]] = [
        Column("analyser", lambda row: f"{row['analyser']}", whole=True),
        Column("version", lambda row: f"{row['version'] or '-'}"),
        *(
            Column(name, lambda row, name=name: f"{row[name]:,}", right=True)  # type: ignore[misc]
            for name in ("in_scope", "skipped", "failed", "findings")
        ),
    ]
    print_table(columns, [_told(name, parts) for name, parts in _by_analyser(detail).items()])
    print()
    for severity in SEVERITIES:
        out.print(f"  {severity:10}{view.counts.get(severity, 0):>8,}")
    print()
    said = [_number(view.findings, "finding"), f"{_new(detail):,} of them new"]
    out.print(", ".join([*said, *([_number(view.artifacts, "artifact")] if view.artifacts else [])]) + ".")
    out.print(f"The gate says: {gate.verdict}.", style=_STYLES[gate.verdict])
    for reason in gate.reasons:
        out.print(f"  {reason.text}", markup=False)
    for because in becauses(detail.parts):
        out.print(because, markup=False)
    if detail.not_asked:
        others = ", ".join(detail.not_asked)
        out.print(f"Analyses before this one asked {others} as well: of what they would find it says nothing.")
    out.print(f"The analysis is {view.id}.", style="dim")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _new(detail: AnalysisDetail) -> int:
    return sum(alike.findings for alike in detail.summary if not alike.known)


def _by_analyser(detail: AnalysisDetail) -> Mapping[str, list[PartView]]:
    """Those that were asked for in their order, with the parts that they have."""
    found: dict[str, list[PartView]] = {name: [] for name in detail.view.analysers}
    for part in detail.parts:
        found.setdefault(part.analyser, []).append(part)
    return found


def _told(name: str, parts: list[PartView]) -> dict[str, object]:
    """One analyser over all its parts."""
    coverage = together(part.coverage for part in parts if part.coverage is not None)
    return {
        "analyser": name,
        "version": next((part.analyser_version for part in parts if part.analyser_version), None),
        "parts": len(parts),
        "missing": sum(1 for part in parts if part.outcome is None),
        "in_scope": sum(part.files for part in parts),
        "skipped": coverage.skipped_total,
        "failed": coverage.failed_total,
        "findings": sum(part.findings or 0 for part in parts),
        "because": list(dict.fromkeys(reason for part in parts for reason in part.reasons)),
    }
