"""The findings of an analysis, listed and one by one, each bound to the revision that it was read at (spec D-19)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.read import Cursor, Page
from testigo.authority.read.pages import Listing, an_id, check_limit
from testigo.errors import CollectionChanged, NotFound
from testigo.evidence.exemptions import exempted
from testigo.evidence.model import (
    AnalysisId,
    AnalysisState,
    Exempted,
    FindingId,
    FindingView,
    Identity,
    Occurrence,
)
from testigo.rules import fields
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.occurrence import Presence
from testigo.rules.evidence.review import Advice, Decision, Review
from testigo.rules.evidence.severity import Severity
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = [
    "Collection",
    "Decision",
    "FindingDetail",
    "FindingFilter",
    "Happened",
    "Sighting",
    "finding",
    "findings",
]

_SIGHTINGS = 100
"""Analyses of a project in which a finding's fingerprint is looked for, the newest."""

_START = ("critical", "00000000-0000-0000-0000-000000000000")


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings are wanted; what is empty or None asks for nothing. All that is asked for has to hold.

    `path` is a file, or with a slash at its end a folder and all below it. `text` is looked for in everything that
    a finding says, whatever its case. `known`: the baseline had it.
    """

    severities: tuple[Severity, ...] = ()
    decisions: tuple[Decision, ...] = ()
    analyser: str | None = None
    rule: str | None = None
    path: str | None = None
    fingerprint: str | None = None
    suppressed: bool | None = None
    known: bool | None = None
    exempt: bool | None = None
    text: str | None = None


EVERY = FindingFilter()


@dataclass(frozen=True, slots=True)
class Collection:
    """A page of findings, and the revision of the collection that it was read from: all its pages have the same."""

    page: Page[FindingView]
    revision: int


class Happened(NamedTuple):
    """A decision about a finding, as its history tells it."""

    revision: int
    decision: Decision
    reason: str
    actor: str
    action: str
    at: datetime


class Sighting(NamedTuple):
    """Another look of the project at the same fingerprint: where it was found, and what was decided there."""

    analysis_id: AnalysisId
    n: int
    state: AnalysisState
    finding_id: FindingId | None
    decision: Decision | None


class Moved(NamedTuple):
    """When an occurrence vanished or was back, by the number of the analysis that says so."""

    n: int
    happened: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FindingDetail:
    """A finding, its decisions from the first on, and what its project knows of its fingerprint.

    `sightings` are the project's newest 100 published analyses that looked where it lies, by an analyser that was
    asked for, the newest first, those that lack it among them. `revision` is that of the collection.
    """

    view: FindingView
    project: str
    n: int
    revision: int
    history: tuple[Happened, ...]
    occurrence: Occurrence | None
    moves: tuple[Moved, ...]
    exemption: Exempted | None
    sightings: tuple[Sighting, ...]


# As with jobs: by the index, row by row, until enough was found or looked at. What costs much is asked last. The
# revision and the rows are of one moment. The limit of the walk is a subselect, which the planner does not see
# through: it would else sort an analysis that it believes to be smaller than that.
_LIST = Statement(
    """
    SELECT a.revision AS revision_now, w.wanted, w.step, w.exempt, CAST(w.id AS text) AS name,
           CAST(w.severity AS text) AS word, CAST(a.id AS text) AS analysis, f.*
    FROM testigo.analysis a
         LEFT JOIN LATERAL (
             SELECT s.*, row_number() OVER (ORDER BY s.severity, s.id) AS step
             FROM (
                 SELECT f.id, f.severity, x.exempt,
                        CASE
                            WHEN f.severity <> ALL (CAST(CAST(:severities AS text[]) AS testigo.severity[])) THEN false
                            WHEN f.decision <> ALL (CAST(:decisions AS text[])) THEN false
                            WHEN CAST(:analyser AS text) IS NOT NULL AND f.analyser <> :analyser THEN false
                            WHEN CAST(:rule AS text) IS NOT NULL AND f.rule <> :rule THEN false
                            WHEN CAST(:fingerprint AS text) IS NOT NULL AND f.fingerprint <> :fingerprint THEN false
                            WHEN CAST(:path AS text) IS NOT NULL
                                 AND NOT coalesce(f.path = :path OR (right(:path, 1) = '/'
                                                                     AND starts_with(f.path, :path)), false)
                            THEN false
                            WHEN f.suppressed <> CAST(:suppressed AS boolean) THEN false
                            WHEN f.known <> CAST(:known AS boolean) THEN false
                            WHEN x.exempt <> CAST(:exempt AS boolean) THEN false
                            WHEN CAST(:text AS text) IS NOT NULL
                                 AND position(lower(:text) IN lower(f.document)) = 0 THEN false
                            ELSE true
                        END AS wanted
                 FROM testigo.finding f
                      CROSS JOIN LATERAL (
                          SELECT EXISTS (SELECT
                                         FROM testigo.exemption e
                                         WHERE e.project = a.project AND e.analyser = f.analyser
                                           AND e.fingerprint = f.fingerprint AND e.ended IS NULL
                                           AND (e.expires_at IS NULL OR e.expires_at > now())) AS exempt
                          OFFSET 0
                      ) AS x
                 WHERE f.collection = a.id
                   AND (f.severity, f.id) > (CAST(:severity AS testigo.severity), CAST(:after AS uuid))
                 ORDER BY f.severity, f.id
                 LIMIT (SELECT CAST(:walk AS integer))
             ) AS s
         ) AS w ON w.wanted OR w.step = :walk
         LEFT JOIN LATERAL (SELECT * FROM testigo.finding WHERE id = w.id OFFSET 0) AS f ON true
    WHERE a.id = CAST(:analysis AS uuid)
    ORDER BY w.severity, w.id
    LIMIT :limit + 1
    """
)

_ONE = Statement(
    """
    SELECT a.revision AS revision_now, a.project, a.n, CAST(f.id AS text) AS name, CAST(a.id AS text) AS analysis, f.*,
           o.presence, o.first_n, o.moved_n, now() AS now
    FROM testigo.finding f
         JOIN testigo.analysis a ON a.id = f.analysis_id
         LEFT JOIN testigo.occurrence o
                   ON o.project = a.project AND o.analyser = f.analyser AND o.fingerprint = f.fingerprint
    WHERE f.id = CAST(:id AS uuid)
    """
)

_HISTORY = Statement(
    """
    SELECT revision, decision, reason, actor, action, at
    FROM testigo.decision
    WHERE finding_id = CAST(:id AS uuid)
    ORDER BY revision DESC
    LIMIT :limit
    """
)

_MOVES = Statement(
    """
    SELECT n, happened, at
    FROM testigo.occurrence_move
    WHERE project = :project AND analyser = :analyser AND fingerprint = :fingerprint
    ORDER BY n DESC
    LIMIT :limit
    """
)

_EXEMPTION = Statement(
    """
    SELECT *
    FROM testigo.exemption
    WHERE project = :project AND analyser = :analyser AND fingerprint = :fingerprint
    """
)

_SIGHTED = Statement(
    """
    SELECT CAST(a.id AS text) AS analysis, a.n, a.state, CAST(f.id AS text) AS id, f.decision
    FROM (SELECT id, n, state, analysers
          FROM testigo.analysis
          WHERE project = :project AND scanner_persisted
            AND (scope IS NULL
                 OR EXISTS (SELECT
                            FROM unnest(scope) AS p(place)
                            WHERE :path = p.place OR (p.place LIKE '%/' AND starts_with(:path, p.place))))
          ORDER BY n DESC
          LIMIT :limit) AS a
         LEFT JOIN LATERAL (
             SELECT f.id, f.decision
             FROM testigo.finding f
             WHERE f.analysis_id = a.id AND f.analyser = :analyser AND f.fingerprint = :fingerprint
             OFFSET 0
         ) AS f ON true
    WHERE :analyser = ANY (a.analysers)
    ORDER BY a.n DESC
    """
)


@single_statement
def findings(
    c: Connection,
    analysis_id: AnalysisId,
    wanted: FindingFilter = EVERY,
    *,
    after: Cursor | None = None,
    limit: int = 100,
) -> Collection:
    """The findings of an analysis, the worst first and each severity in the order of publication.

    A cursor is of one revision of the collection: what changed any of it meanwhile raises `CollectionChanged`,
    whose facts name the revision now. One page looks at `LIMITS.walk_rows` findings at most: see `Page.complete`.
    Raises `NotFound` for an unknown analysis, and `Invalid` naming the field.
    """
    fields.must_be_id(analysis_id, field="analysis")
    check_limit(limit)
    asked = _asked(wanted)
    listing = Listing("findings", (analysis_id, *asked.values()), (_a_revision, _a_severity, an_id))
    revision, severity, start = listing.position(after, ("0", *_START))
    walk = LIMITS.walk_rows
    rows = _LIST.rows(c, **asked, analysis=analysis_id, severity=severity, after=start, walk=walk, limit=limit)
    if not rows:
        raise NotFound(f"There is no analysis {analysis_id}.", field="analysis")
    now = rows[0].revision_now
    _check_revision(analysis_id, now, int(revision) or now)
    seen = [row for row in rows if row.step is not None]
    found = [(_view(row, row.exempt), (str(now), row.word, row.name)) for row in seen if row.wanted]
    last = seen[-1] if seen else None
    mark = (str(now), last.word, last.name) if last is not None and last.step == walk else None
    return Collection(listing.page(found, limit, mark), now)


def finding(c: Connection, finding_id: FindingId, *, collection_revision: int | None = None) -> FindingDetail:
    """A finding, its history, and what its project knows of it over its analyses.

    Raises `NotFound`, and `CollectionChanged` when its analysis is not at `collection_revision` any more.
    """
    fields.must_be_id(finding_id, field="finding")
    row = _ONE.row(c, id=finding_id)
    if row is None:
        raise NotFound(f"There is no finding {finding_id}.", field="finding")
    if collection_revision is not None:
        _check_revision(AnalysisId(row.analysis), row.revision_now, collection_revision)
    who = {"project": row.project, "analyser": row.analyser, "fingerprint": row.fingerprint}
    exemption = _EXEMPTION.row(c, **who)
    kept = None if exemption is None else exempted(exemption, row.now)
    history = _HISTORY.rows(c, id=finding_id, limit=LIMITS.page_max)[::-1]
    moves = _MOVES.rows(c, **who, limit=_SIGHTINGS)[::-1]
    return FindingDetail(
        view=_view(row, kept is not None and kept.state == "active"),
        project=row.project,
        n=row.n,
        revision=row.revision_now,
        history=tuple(_happened(each) for each in history),
        occurrence=_occurrence(row),
        moves=tuple(Moved(each.n, each.happened, each.at) for each in moves),
        exemption=kept,
        sightings=tuple(_sighting(each) for each in _SIGHTED.rows(c, **who, path=row.path, limit=_SIGHTINGS)),
    )


def _asked(wanted: FindingFilter) -> dict[str, Any]:
    for name in ("analyser", "rule", "path", "fingerprint", "text"):
        if (value := getattr(wanted, name)) is not None:
            fields.key(value, field=name)
    for name in ("suppressed", "known", "exempt"):
        if (value := getattr(wanted, name)) is not None:
            fields.flag(value, field=name)
    return {
        "severities": _words(wanted.severities, Severity, "severities"),
        "decisions": _words(wanted.decisions, Decision, "decisions"),
        "analyser": wanted.analyser,
        "rule": wanted.rule,
        "path": wanted.path,
        "fingerprint": wanted.fingerprint,
        "suppressed": wanted.suppressed,
        "known": wanted.known,
        "exempt": wanted.exempt,
        "text": wanted.text,
    }


def _words(given: Sequence[Any], among: Any, at: str) -> list[str] | None:
    fields.sequence(given, field=at, most=len(among))
    return [str(fields.member(each, among, field=at)) for each in given] or None


def _check_revision(analysis_id: AnalysisId, now: int, seen: int) -> None:
    if now != seen:
        raise CollectionChanged(
            f"The findings of analysis {analysis_id} are at revision {now}, and no longer at {seen}.",
            field="collection_revision",
            revision=now,
        )


def _view(row: Row[Any], exempt: bool) -> FindingView:
    advice = None if row.advisor is None else Advice(row.advisor, Decision(row.advice), row.advice_because)
    return FindingView(
        id=FindingId(row.name),
        analysis_id=AnalysisId(row.analysis),
        part=row.part,
        finding=Finding.from_json(json.loads(row.document)),
        review=Review(Decision(row.decision), row.reason or "", row.revision, advice),
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        advised_at=row.advised_at,
        known=row.known,
        exempt=exempt,
    )


def _happened(row: Row[Any]) -> Happened:
    return Happened(row.revision, Decision(row.decision), row.reason, row.actor, row.action, row.at)


def _occurrence(row: Row[Any]) -> Occurrence | None:
    if row.presence is None:
        return None
    return Occurrence(Identity(row.analyser, row.fingerprint), Presence(row.presence), row.first_n, row.moved_n)


def _sighting(row: Row[Any]) -> Sighting:
    return Sighting(
        AnalysisId(row.analysis),
        row.n,
        AnalysisState(row.state),
        None if row.id is None else FindingId(row.id),
        None if row.decision is None else Decision(row.decision),
    )


def _a_revision(part: str) -> None:
    fields.whole(int(part), field="cursor", low=1, high=fields.INTEGER_MAX)


def _a_severity(part: str) -> None:
    fields.member(part, Severity, field="cursor")
