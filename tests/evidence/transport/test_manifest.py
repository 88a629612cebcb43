"""A manifest is read strictly, refused by field, and answers exactly one request (spec D-06)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testigo.errors import Invalid, ManifestInvalid
from testigo.evidence.transport.manifest import MANIFEST_BYTES_MAX, Attested, Manifest
from testigo.evidence.transport.request import Request
from testigo.rules.evidence.coverage import Coverage, Outcome, Uncovered
from testigo.rules.identity import canonical, content_digest
from tests.evidence.transport.results import REQUEST, Result, manifest

DIGEST = content_digest("x")
SBOM = Attested("sbom.cdx.json", "application/vnd.cyclonedx+json", 3, DIGEST, DIGEST, DIGEST)


def _whole() -> dict[str, Any]:
    told = replace(Result.of(2, 1).manifest, artifacts=(SBOM,), artifact_manifest=Manifest.digest_of((SBOM,)))
    return told.to_json()


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"v": 2}, "version", "v"),
    ({"more": 1}, "members", "more"),
    ({"run": "../run"}, "value", "run"),
    ({"run": None}, "value", "run"),
    ({"request": "sha256:0"}, "value", "request"),
    ({"result": DIGEST.upper()}, "value", "result"),
    ({"analyser": ""}, "value", "analyser"),
    ({"analyser_version": "1\x00"}, "value", "analyser_version"),
    ({"started_at": "yesterday"}, "value", "started_at"),
    ({"started_at": "2026-01-02T03:04:05"}, "value", "started_at"),
    ({"ended_at": "2025-01-02T03:04:05+00:00"}, "value", "ended_at"),
    ({"outcome": "fine"}, "value", "outcome"),
    ({"outcome": "incomplete"}, "reasons", "reasons"),
    ({"reasons": ["why"]}, "reasons", "reasons"),
    ({"reasons": [""]}, "value", "reasons[0]"),
    ({"reasons": ["x"] * 101}, "value", "reasons"),
    ({"outcome": "failed", "reasons": ["why"]}, "outcome", "outcome"),
    ({"findings": -1}, "value", "findings"),
    ({"findings": True}, "value", "findings"),
    ({"findings": 4}, "summary", "summary"),
    ({"bytes": 1.5}, "value", "bytes"),
    ({"pages": 0}, "pages", "pages"),
    ({"pages": 4}, "pages", "pages"),
    ({"summary": {"low": 3}}, "value", "summary"),
    ({"cursor": None}, "cursor", "cursor"),
    ({"cursor": "1.x"}, "value", "cursor"),
    ({"coverage": {}}, "coverage", "coverage"),
    ({"artifact_manifest": DIGEST}, "artifact_manifest", "artifact_manifest"),
    ({"artifacts": []}, "artifact_manifest", "artifact_manifest"),
    ({"artifacts": [SBOM.to_json()] * 2}, "artifacts", "artifacts"),
    ({"artifacts": [{**SBOM.to_json(), "name": "../sbom"}]}, "value", "artifacts[0].name"),
    ({"artifacts": [{**SBOM.to_json(), "bytes": 2**40}]}, "value", "artifacts[0].bytes"),
    ({"artifacts": [{"name": "sbom"}]}, "members", "artifacts[0]"),
    ({"provenance": {"host": 1}}, "value", "provenance.host"),
    ({"provenance": {str(n): "x" for n in range(33)}}, "value", "provenance"),
]


@pytest.mark.parametrize(("members", "check", "field"), WRONG)
def test_a_manifest_is_refused_by_field(members: dict[str, Any], check: str, field: str) -> None:
    """Each member by itself, and all of them against each other."""
    with pytest.raises(ManifestInvalid) as refusal:
        Manifest.from_json({**_whole(), **members})
    assert (refusal.value.facts["check"], refusal.value.field) == (check, field)


def test_a_manifest_is_read_as_it_was_written() -> None:
    """Whoever reads it has what was sealed, and its binding is what the checkpoint holds."""
    sent = canonical(_whole())
    read = Manifest.from_bytes(sent)
    assert canonical(read.to_json()) == sent
    assert (read.binding.run, read.binding.result) == (read.run, read.result)


@pytest.mark.parametrize(
    ("body", "check"),
    [
        (b"{", "json"),
        (b"[]", "json"),
        (b'{"v":1,"v":1}', "canonical"),
        (b" " * (MANIFEST_BYTES_MAX + 1), "size"),
    ],
)
def test_a_manifest_has_one_form(body: bytes, check: str) -> None:
    """Nothing that two readers could read differently is read at all (field case R80)."""
    with pytest.raises(ManifestInvalid) as refusal:
        Manifest.from_bytes(body)
    assert refusal.value.facts["check"] == check


def test_what_left_files_out_is_not_complete() -> None:
    """Silence about a file would look like a pass (spec D-24)."""
    part = Coverage(2, 1, 0, (Uncovered("b.py", "why"),))
    with pytest.raises(ManifestInvalid) as refusal:
        Manifest.from_json(manifest(coverage=part, reasons=("one file was skipped",)).to_json())
    assert refusal.value.facts["check"] == "outcome"
    told = manifest(coverage=part, reasons=("one file was skipped",), outcome=Outcome.INCOMPLETE)
    assert Manifest.from_json(told.to_json()) == told


def test_a_result_answers_the_request_that_was_made() -> None:
    """And no other: a result that was asked for by somebody else is not ours (spec D-06)."""
    manifest().check_request(REQUEST)
    for other, check in ((replace(REQUEST, files=("b.py",)), "request"), (replace(REQUEST, analyser="x"), "request")):
        with pytest.raises(ManifestInvalid) as refusal:
            manifest().check_request(other)
        assert refusal.value.facts["check"] == check
    with pytest.raises(ManifestInvalid) as refusal:
        manifest(analyser="ruff").check_request(REQUEST)
    assert refusal.value.facts["check"] == "analyser"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"v": 2}, "v"),
        ({"root": "src"}, "root"),
        ({"root": "/src\x00"}, "root"),
        ({"analyser": "Bandit!"}, "analyser"),
        ({"files": ["../a.py"]}, "files[0]"),
        ({"files": ["b.py", "a.py"]}, "files"),
        ({"files": ["a.py", "a.py"]}, "files"),
        ({"files": "a.py"}, "files"),
        ({"files": [1]}, "files[0]"),
        ({"options": {"file": 1}}, "options.file"),
        ({"options": {"../x": "1"}}, "options"),
        ({"options": []}, "options"),
        ({"more": 1}, "more"),
    ],
)
def test_a_request_is_refused_by_field(members: dict[str, Any], field: str) -> None:
    """Before anything is run."""
    with pytest.raises(Invalid) as refusal:
        Request.from_json({**REQUEST.to_json(), **members})
    assert refusal.value.field == field


def test_the_same_request_has_the_same_digest() -> None:
    """Whatever the order of its options; any other has another."""
    one = Request("sarif", "/src", options={"a": "1", "b": "2"})
    assert Request.from_json(one.to_json()).digest == one.digest
    assert Request("sarif", "/src", options={"b": "2", "a": "1"}).digest == one.digest
    assert Request("sarif", "/src", options={"a": "1"}).digest != one.digest
