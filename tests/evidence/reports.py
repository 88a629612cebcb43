"""Reports to be read: written into a folder, and what comes out of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testigo.errors import EvidenceInvalid
from testigo.evidence.reported import Reading
from testigo.evidence.sarif import read
from testigo.rules.evidence.sealing import Draft

__all__ = ["ROOT", "drafts", "readings", "refusal", "result", "run", "sarif", "written"]

ROOT = "/work/shop"


def written(folder: Path, content: object, name: str = "report.sarif") -> Path:
    """A file of `content`: bytes as they are, anything else as JSON."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def sarif(*runs: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A SARIF log of those runs."""
    return {"version": "2.1.0", "runs": list(runs), **members}


def run(*results: dict[str, Any], rules: list[dict[str, Any]] | None = None, **members: Any) -> dict[str, Any]:
    """A run of a tool with those rules."""
    driver: dict[str, Any] = {"name": "tool"} if rules is None else {"name": "tool", "rules": rules}
    return {"tool": {"driver": driver}, "results": list(results), **members}


def result(uri: str | None = "a.py", line: int | None = 1, **members: Any) -> dict[str, Any]:
    """A result at a line of a file; members replace what it says."""
    made: dict[str, Any] = {"ruleId": "R1", "message": {"text": "said"}}
    if uri is not None:
        region = {} if line is None else {"region": {"startLine": line}}
        made["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}]
    return {**made, **members}


def readings(path: Path, *, roots: tuple[str, ...] = (ROOT,)) -> list[Reading]:
    """All that is in the report."""
    return list(read(path, roots=roots))


def drafts(path: Path, *, roots: tuple[str, ...] = (ROOT,)) -> list[Draft]:
    """The results in the report."""
    return [each for each in readings(path, roots=roots) if isinstance(each, Draft)]


def refusal(path: Path, *, roots: tuple[str, ...] = (ROOT,)) -> EvidenceInvalid:
    """The error with which the report is refused; it names the file."""
    with pytest.raises(EvidenceInvalid) as raised:
        readings(path, roots=roots)
    assert path.name in raised.value.message
    assert raised.value.remedy
    return raised.value
