"""Projects, analyses, findings and artifacts over HTTP: what is told, and what is changed as it was seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from testigo.access.roles import Role
from testigo.authority.actions import new_id
from testigo.evidence.model import AnalysisId
from testigo.rules.evidence.severity import Severity
from tests.evidence.store.kit import found, going, listed, sealed
from tests.scan.beginning import scanning
from tests.web.api.asking import is_problem
from tests.web.conftest import Site
from tests.web.panel.dossier import DSSE, SBOM, dossier, several, with_artifact

WRONG = "2001-01-01T00:00:00Z"
"""A time that is over."""


def one_of(site: Site, analysis_id: AnalysisId) -> str:
    """The id of the first finding."""
    return next(iter(listed(site.world, analysis_id).values())).id


def test_findings_are_listed_and_told_without_the_source_to_who_may_not_see_it(site: Site) -> None:
    """Page by page of one revision; once something was decided the next page is refused (spec D-19)."""
    made = dossier(site, *several(5))
    operator, viewer = site.program(Role.OPERATOR), site.program(Role.VIEWER)
    path = f"/api/v1/analyses/{made}/findings"
    first = operator.get(path, params={"limit": 3, "decision": "open"}).json()
    assert [each["severity"] for each in first["items"]] == ["critical", "high", "medium"]
    assert first["items"][0]["snippet"] == "x = 0\n"
    assert first["revision"] == 2
    assert len(operator.get(first["next"]).json()["items"]) == 2
    veiled = viewer.get(path, params={"severity": ["high", "low"]}).json()["items"]
    assert [(each["snippet"], each["metadata"], each["redacted"]) for each in veiled] == [(None, {}, True)] * 2
    is_problem(viewer.get(path, params={"text": "x = 0"}), 403, "FORBIDDEN")
    assert len(operator.get(path, params={"text": "X = 0"}).json()["items"]) == 1
    reviewer = site.program(Role.REVIEWER)
    body = {"findings": {first["items"][0]["id"]: 1}, "decision": "needs_review"}
    assert reviewer.post(f"/api/v1/analyses/{made}/decide", json=body).status_code == 200
    assert is_problem(operator.get(first["next"]), 409, "COLLECTION_CHANGED")["facts"] == {"revision": 3}
    is_problem(operator.get(f"/api/v1/analyses/{new_id()}/findings"), 404, "NOT_FOUND")
    is_problem(operator.get(path, params={"severity": "worst"}), 422)


def test_findings_are_decided_each_as_it_was_seen(site: Site) -> None:
    """One that has changed is told in its row and left alone; sent again under its key it is the same (spec D-17)."""
    made = dossier(site, found("a", Severity.HIGH), found("b", Severity.HIGH))
    reviewer = site.program(Role.REVIEWER)
    names = {name: view.id for name, view in listed(site.world, made).items()}
    path, key = f"/api/v1/analyses/{made}/decide", {"Idempotency-Key": "triage-1"}
    body = {"findings": {names["a"]: 1}, "decision": "fixed", "reason": "it is gone"}
    first = reviewer.post(path, json=body, headers=key).json()
    assert first["findings"] == [{"finding_id": names["a"], "decided": True, "decision": "fixed", "revision": 2}]
    assert first["verdict"] == "failed"
    assert reviewer.post(path, json=body, headers=key).json() == first
    both = {"findings": {names["a"]: 1, names["b"]: 1}, "decision": "ignore", "reason": "noise"}
    second = reviewer.post(path, json=both).json()
    assert [(row["decided"], row["decision"]) for row in second["findings"]] == [(False, "fixed"), (True, "ignore")]
    assert second["verdict"] == "passed"
    is_problem(reviewer.post(path, json={**both, "reason": ""}), 422)
    is_problem(reviewer.post(path, json={**body, "reason": " "}), 422)
    is_problem(reviewer.post(path, json={**body, "collection_revision": 2}), 409, "COLLECTION_CHANGED")
    told = reviewer.get(f"/api/v1/findings/{names['a']}").json()
    assert [(row["decision"], row["reason"]) for row in told["history"]] == [("fixed", "it is gone")]
    assert (told["presence"], told["exemption"]) == ("present", None)
    assert [row["finding_id"] for row in told["sightings"]] == [names["a"]]


def test_a_risk_is_taken_and_taken_back_an_advice_moves_nothing(site: Site) -> None:
    """Exemptions are guarded by their revision; advice stands apart (spec D-19, D-23)."""
    made = dossier(site, found("a", Severity.HIGH))
    name, reviewer = one_of(site, made), site.program(Role.REVIEWER)
    path = f"/api/v1/findings/{name}"
    until = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    asked = {"reason": "until the gateway goes", "expected_revision": 0, "expires_at": until}
    assert reviewer.post(f"{path}/exempt", json=asked).json() == {"project": "shop", "revision": 1, "verdict": "passed"}
    is_problem(reviewer.post(f"{path}/exempt", json=asked), 409, "REVISION_MISMATCH")
    is_problem(reviewer.post(f"{path}/exempt", json={**asked, "expected_revision": 1, "expires_at": WRONG}), 422)
    (risk,) = reviewer.get("/api/v1/projects/shop/exemptions").json()["items"]
    assert (risk["state"], risk["reason"]) == ("active", "until the gateway goes")
    ended = reviewer.post(f"{path}/unexempt", json={"reason": "it stays", "expected_revision": 1}).json()
    assert ended == {"project": "shop", "revision": 2, "verdict": "failed"}
    before = reviewer.get(path).json()["revision"]
    advice = {"advisor": "a-model", "suggests": "ignore", "because": "a test"}
    assert reviewer.put(f"{path}/advice", json={"advice": advice}).status_code == 200
    told = reviewer.get(path).json()
    assert (told["view"]["advice"], told["view"]["decision"], told["revision"]) == (advice, "open", before)
    is_problem(reviewer.put(f"{path}/advice", json={"advice": {**advice, "advisor": "\x00"}}), 422)


def test_a_finding_is_deleted_by_an_administrator(site: Site) -> None:
    """With a reason, at the revision that was seen (spec D-18)."""
    made = dossier(site, found("a", Severity.HIGH))
    path, admin = f"/api/v1/findings/{one_of(site, made)}", site.program(Role.ADMIN)
    is_problem(admin.post(f"{path}/delete", json={"reason": "r", "expected_revision": 2}), 409, "REVISION_MISMATCH")
    is_problem(admin.post(f"{path}/delete", json={"reason": " ", "expected_revision": 1}), 422)
    assert admin.post(f"{path}/delete", json={"reason": "r", "expected_revision": 1}).json()["verdict"] == "passed"
    is_problem(admin.get(path), 404, "NOT_FOUND")


def test_a_gate_is_set_as_it_was_seen_and_an_analysis_told_whole(site: Site) -> None:
    """With the newest evidence judged at once, and the reasons (spec D-21)."""
    made = dossier(site, found("a", Severity.HIGH))
    reviewer = site.program(Role.REVIEWER)
    told = reviewer.get(f"/api/v1/analyses/{made}").json()
    assert (told["view"]["state"], told["gate"]["verdict"]) == ("complete", "failed")
    assert [reason["code"] for reason in told["gate"]["reasons"]] == ["THRESHOLD_EXCEEDED"]
    assert told["parts"][0]["coverage"]["in_scope"] == 10
    policy = {"thresholds": {"high": 1}}
    asked = {"policy": policy, "expected_revision": 0, "baseline": made, "reason": "one is known"}
    done = reviewer.put("/api/v1/projects/shop/gate", json=asked).json()
    assert done == {"project": "shop", "revision": 1, "analysis_id": made, "verdict": "passed"}
    is_problem(reviewer.put("/api/v1/projects/shop/gate", json=asked), 409, "REVISION_MISMATCH")
    is_problem(reviewer.put("/api/v1/projects/shop/gate", json={**asked, "policy": {"thresholds": {"bad": 1}}}), 422)
    is_problem(reviewer.put("/api/v1/projects/shop/gate", json={**asked, "reason": " "}), 422)
    shown = reviewer.get("/api/v1/projects/shop").json()
    assert (shown["policy_revision"], shown["baseline"], shown["latest_verdict"]) == (1, made, "passed")
    assert [each["name"] for each in reviewer.get("/api/v1/projects").json()["items"]] == ["shop"]
    assert [each["id"] for each in reviewer.get("/api/v1/analyses", params={"project": "shop"}).json()["items"]] == [
        made
    ]


def test_an_analysis_is_cancelled_until_it_is_published(site: Site) -> None:
    """With a reason; afterwards it stays what it is (spec D-20)."""
    run, operator = going(site.world), site.program(Role.OPERATOR)
    path = f"/api/v1/analyses/{run.id}/cancel"
    is_problem(operator.post(path, json={"reason": ""}), 422)
    first = operator.post(path, json={"reason": "the wrong tree"}).json()
    assert first == {"analysis_id": run.id, "state": "cancelled", "ended": True}
    assert operator.post(path, json={"reason": "again"}).json()["ended"] is False
    done = dossier(site)
    is_problem(operator.post(f"/api/v1/analyses/{done}/cancel", json={"reason": "late"}), 409, "STATE_CONFLICT")


def test_an_analysis_that_has_ended_is_done_again_once(site: Site, tmp_path: Path) -> None:
    """By who may retry, once however often it is asked under one key; what is published stays (spec D-10)."""
    run, operator = scanning(site.world, tmp_path), site.program(Role.OPERATOR)
    path, key = f"/api/v1/analyses/{run.id}/reprocess", {"Idempotency-Key": "again-1"}
    is_problem(operator.post(path, json={}), 409, "STATE_CONFLICT")
    run.publish(sealed(found("a")))
    first = operator.post(path, json={"reason": "a new ruff"}, headers=key)
    assert first.status_code == 201
    told = first.json()
    assert (told["project"], told["n"], told["supersedes"]) == ("shop", 2, run.id)
    assert operator.post(path, json={"reason": "a new ruff"}, headers=key).json() == told
    is_problem(operator.post(path, json={}), 409, "STATE_CONFLICT")
    new, old = (operator.get(f"/api/v1/analyses/{each}").json()["view"] for each in (told["analysis_id"], run.id))
    assert (new["state"], new["supersedes"], new["scope"]) == ("running", run.id, None)
    assert (old["state"], old["successor"], old["findings"]) == ("complete", new["id"], 1)
    is_problem(operator.post(f"/api/v1/analyses/{dossier(site)}/reprocess", json={}), 409, "STATE_CONFLICT")


def test_an_artifact_is_told_and_downloaded(site: Site, tmp_path: Path) -> None:
    """Its index entry, its verified bytes and its envelope (spec D-15)."""
    view = with_artifact(site, tmp_path)
    operator = site.program(Role.OPERATOR)
    (told,) = operator.get(f"/api/v1/analyses/{view.analysis_id}/artifacts").json()["items"]
    assert told == operator.get(f"/api/v1/artifacts/{view.id}").json()
    assert (told["name"], told["digest"], told["bytes"]) == ("sbom.json", view.digest, len(SBOM))
    assert operator.get(f"/api/v1/artifacts/{view.id}/content").content == SBOM
    assert operator.get(f"/api/v1/artifacts/{view.id}/attestation").content == DSSE
    is_problem(site.program(Role.VIEWER).get(f"/api/v1/artifacts/{view.id}/content"), 403, "FORBIDDEN")
    is_problem(operator.get(f"/api/v1/artifacts/{new_id()}/content"), 404, "NOT_FOUND")
