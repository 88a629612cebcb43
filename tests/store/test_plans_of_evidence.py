"""Plans of evidence: whatever the server knows of the tables, nobody walks the findings of all analyses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from testigo import settings
from testigo.evidence.artifacts import artifact, artifacts
from testigo.evidence.exemptions import end_exemption, exempt, exemptions
from testigo.evidence.findings import FindingFilter, finding, findings
from testigo.evidence.gates import gate, reevaluate, set_gate
from testigo.evidence.listing import analyses, analysis
from testigo.evidence.model import AnalysisId, ArtifactId, FindingId, Identity
from testigo.evidence.occurrences import occurrences
from testigo.evidence.projects import project, projects
from testigo.evidence.publication import persisted
from testigo.evidence.review import advise, decide, decide_many, delete_finding
from testigo.rules.evidence.gate import Policy
from testigo.rules.evidence.occurrence import Presence
from testigo.rules.evidence.review import Advice, Decision
from testigo.rules.evidence.severity import Severity
from testigo.settings import LIMITS
from testigo.store.database import Database
from tests.evidence.store.kit import found, going, published, sealed
from tests.store.planned import Planned, look
from tests.store.plans import Planning, Seen, explained
from tests.world import World

BOUND = 500
"""Findings that a reading looks at, of 100,000 in ten analyses."""
LARGE = ("finding", "occurrence", "part", "summary", "decision", "artifact")
BIG = AnalysisId("00000000-0000-7000-8000-000000000005")
APART = AnalysisId("00000000-0000-7000-8000-000000000010")
"""The only analysis of a project that knows nothing yet: publishing against it as the baseline moves nothing else."""
ONE = FindingId("00000000-0000-7005-8000-000000000777")

FINDING = """{"analyser":"ruff","column":null,"end_column":null,"end_line":null,"fingerprint":"sha256:%s",
"fingerprint_by":"computed","level":"warning","line":1,"message":"m","metadata":{},"path":"src/a.py","rule":"S105",
"rule_name":null,"severity":"high","snippet":null,"suppressed":false}""".replace("\n", "")

GROW = (
    """
    INSERT INTO testigo.project (name, created_at, policy, analyses, moved_by)
    SELECT 'p' || n, now(), '{}', 10, 10 FROM generate_series(1, 200) AS n
    """,
    """
    INSERT INTO testigo.analysis (id, began_at, n, project, state, source, actor, action, analysers, publish_job,
                                  scanner_persisted, verdict, findings)
    SELECT CAST('00000000-0000-7000-8000-' || lpad(CAST(p * 10 + n - 10 AS text), 12, '0') AS uuid), now(), n, 'p' || p,
           'complete', 's', 'a', 'b', '{ruff}', gen_random_uuid(), true, 'passed', 10000
    FROM generate_series(1, 200) AS p, generate_series(1, 10) AS n
    """,
    f"UPDATE testigo.analysis SET project = 'p300' WHERE id = '{APART}'",
    """
    INSERT INTO testigo.part (analysis_id, n, job_id, files, analyser, outcome, in_scope, skipped, failed, coverage)
    SELECT id, 0, gen_random_uuid(), 1, 'ruff', 'complete', 1, 0, 0,
           '{"in_scope":1,"analysed":1,"skipped_total":0,"failed_total":0,"skipped":[],"failed":[]}'
    FROM testigo.analysis WHERE project LIKE 'p%'
    """,
    f"""
    INSERT INTO testigo.finding (id, analysis_id, collection, severity, part, suppressed, analyser, fingerprint, rule,
                                 path, document)
    SELECT CAST('00000000-0000-7' || lpad(CAST(a AS text), 3, '0') || '-8000-' || lpad(CAST(n AS text), 12, '0')
                AS uuid),
           CAST('00000000-0000-7000-8000-' || lpad(CAST(a AS text), 12, '0') AS uuid),
           CAST('00000000-0000-7000-8000-' || lpad(CAST(a AS text), 12, '0') AS uuid), 'high', 0, false, 'ruff',
           'sha256:' || lpad(CAST(n AS text), 64, '0'), 'S105', 'src/a.py',
           format('{FINDING}', lpad(CAST(n AS text), 64, '0'))
    FROM generate_series(1, 10) AS a, generate_series(1, 10000) AS n
    """,
    """
    INSERT INTO testigo.summary (analysis_id, analyser, severity, decision, suppressed, known, findings)
    SELECT id, 'ruff', 'high', 'open', false, false, 10000 FROM testigo.analysis WHERE project LIKE 'p%'
    """,
    """
    INSERT INTO testigo.occurrence (project, analyser, fingerprint, presence, first_n, moved_n)
    SELECT 'p' || p, 'ruff', 'sha256:' || lpad(CAST(n AS text), 64, '0'), 'present', 1, 1
    FROM generate_series(1, 10) AS p, generate_series(1, 10000) AS n
    """,
    """
    INSERT INTO testigo.exemption (project, analyser, fingerprint, revision, granted_at, reason, reviewer)
    SELECT 'p' || p, 'ruff', 'sha256:' || lpad(CAST(n AS text), 64, '0'), 1, now(), 'r', 'a'
    FROM generate_series(1, 200) AS p, generate_series(1, 50) AS n
    """,
    """
    INSERT INTO testigo.decision (finding_id, revision, decision, reason, actor, action, at)
    SELECT id, 2, 'open', '', 'a', 'b', now() FROM testigo.finding WHERE part = 0 AND rule = 'S105' LIMIT 20000
    """,
    """
    INSERT INTO testigo.artifact (id, analysis_id, part, bytes, name, media_type, digest, raw_digest, attestation,
                                  published_at)
    SELECT id, id, 0, 1, 'sbom', 'application/json', 'd', 'd', 'd', now() FROM testigo.analysis WHERE project LIKE 'p%'
    """,
)


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let readings look at few findings, as they do of a million."""
    for name, module in list(sys.modules.items()):
        if name.startswith("testigo.") and getattr(module, "LIMITS", None) is LIMITS and module is not settings:
            monkeypatch.setattr(module, "LIMITS", replace(LIMITS, walk_rows=BOUND))


def live(planned: Planned) -> None:
    """Let there be one analysis when the server looks."""
    with Database(planned.url) as db:
        published(World(db), found("a"), project="tiny")
    look(planned)


def nothing(_: Planned) -> None:
    """Let nobody look at the tables."""


Step = Callable[[Planned], None]
STATISTICS: dict[str, tuple[Step, Step]] = {
    "none": (nothing, nothing),
    "of empty tables": (look, nothing),
    "of tiny tables": (live, nothing),
    "fresh": (nothing, look),
}


def moves(db: Database, turn: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every reading and command that meets many findings, by its name; each turn has findings of its own."""
    world = World(db)
    target, *more = (FindingId(f"00000000-0000-7005-8000-{n:012d}") for n in range(100 + turn, 300 + turn, 2))
    known = Identity("ruff", f"sha256:{777 + turn:064d}")
    own = f"p{turn + 1}"
    for wanted in (FindingFilter(), FindingFilter(rule="none"), FindingFilter(severities=(Severity.LOW,), exempt=True)):
        yield f"findings, {wanted}", partial(db.run, findings, BIG, wanted)
    yield "finding", lambda: db.run(finding, ONE)
    yield "analysis", lambda: db.run(analysis, BIG)
    yield "analyses", lambda: db.run(analyses)
    yield "analyses of a project", lambda: db.run(analyses, project="p1")
    yield "gate", lambda: db.run(gate, BIG)
    yield "project", lambda: db.run(project, "p1")
    yield "projects", lambda: db.run(projects)
    yield "occurrences", lambda: db.run(occurrences, "p1")
    yield "occurrences that are gone", lambda: db.run(occurrences, "p1", presence=Presence.ABSENT)
    yield "exemptions", lambda: db.run(exemptions, "p1")
    yield "artifacts", lambda: db.run(artifacts, BIG)
    yield "artifact", lambda: db.run(artifact, ArtifactId(BIG))
    yield "persisted", lambda: db.run(persisted, BIG)
    options: dict[str, Any] = {"expected_revision": 1, "reason": "r"}
    yield "decide", lambda: db.run(decide, target, Decision.IGNORE, action=world.action(), **options)
    some = dict.fromkeys(more[1:], 1)
    yield (
        "decide_many",
        lambda: db.run(decide_many, BIG, some, Decision.IGNORE, reason="r", action=world.action()),
    )
    yield "advise", lambda: db.run(advise, ONE, Advice("m", Decision.OPEN, "b"), action=world.action())
    yield "delete_finding", lambda: db.run(delete_finding, more[0], action=world.action(), **options)
    yield "exempt", lambda: db.run(exempt, own, known, reason="r", action=world.action())
    yield "end_exemption", lambda: db.run(end_exemption, own, known, action=world.action(), **options)
    yield "set_gate", lambda: db.run(set_gate, own, Policy(), expected_revision=0, action=world.action())
    yield "reevaluate", lambda: db.run(reevaluate, BIG, action=world.action())
    yield "publish", lambda: going(world, baseline=APART, project="p300").publish(sealed(found("a"), found("b")))


@pytest.mark.parametrize("statistics", STATISTICS)
def test_nothing_walks_the_findings_of_all_analyses(planned: Planned, statistics: str) -> None:
    """By any statistics, and planned as behind a pooler: by an index, a bounded number of rows (spec P-12)."""
    before, after = STATISTICS[statistics]
    before(planned)
    for statement in GROW:
        planned.hand.execute(statement)
    after(planned)
    for turn, planning in enumerate(Planning):
        with explained(planned.url, planning) as seen:
            for name, move in moves(seen.db, turn):
                seen.plans.clear()
                move()
                _check(seen, name)


def _check(seen: Seen, name: str) -> None:
    assert seen.plans, name
    for plan in seen.plans:
        for table in LARGE:
            scanned = [scan for scan in plan.scans(table) if not scan.index]
            assert not scanned, (name, table, plan.query)
        assert plan.blocks <= 10 * BOUND, (name, plan.blocks, plan.query)
