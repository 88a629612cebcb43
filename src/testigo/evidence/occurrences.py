"""What a project knows of its findings over its analyses, moved only by complete ones (spec D-23; R83, R86, R88)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.read import Cursor, Page
from testigo.authority.read.pages import Listing, a_name, check_limit
from testigo.evidence.collection import Locked
from testigo.evidence.exemptions import lapse_exemptions
from testigo.evidence.model import Identity, Occurrence
from testigo.rules import fields
from testigo.rules.evidence.occurrence import MOVES, Presence
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement, array

__all__ = ["advance_occurrences", "occurrences"]

# The table of the rules comes as rows, so that what is written down there is what happens here. What stays as it
# was, where it was, is not written: the same analysis again touches nothing. An analysis of a part says nothing of
# what lies elsewhere, unless it reports it.
_ADVANCE = Statement(
    """
    WITH rule AS MATERIALIZED (
        SELECT *
        FROM unnest(CAST(:befores AS text[]), CAST(:reported AS boolean[]), CAST(:afters AS text[]),
                    CAST(:happened AS text[]))
                 AS r(before, reported, after, happened)
    ),
    moved AS MATERIALIZED (
        SELECT s.analyser, s.fingerprint, s.path, r.after, r.happened
        FROM (SELECT coalesce(o.analyser, f.analyser) AS analyser,
                     coalesce(o.fingerprint, f.fingerprint) AS fingerprint,
                     o.presence, f.fingerprint IS NOT NULL AS reported, o.path AS was_at,
                     CASE WHEN f.fingerprint IS NULL THEN o.path ELSE f.path END AS path
              FROM (SELECT analyser, fingerprint, path
                    FROM testigo.finding
                    WHERE analysis_id = CAST(:analysis AS uuid) AND analyser = ANY (CAST(:looked AS text[]))) AS f
                   FULL JOIN
                   (SELECT analyser, fingerprint, presence, path
                    FROM testigo.occurrence
                    WHERE project = :project AND analyser = ANY (CAST(:looked AS text[]))) AS o
                   ON o.analyser = f.analyser AND o.fingerprint = f.fingerprint) AS s
             JOIN rule r ON r.before IS NOT DISTINCT FROM s.presence AND r.reported = s.reported
        WHERE (r.after IS DISTINCT FROM r.before OR s.path IS DISTINCT FROM s.was_at)
          AND (s.reported OR CAST(:scope AS text[]) IS NULL
               OR EXISTS (SELECT
                          FROM unnest(CAST(:scope AS text[])) AS p(place)
                          WHERE s.path = p.place OR (p.place LIKE '%/' AND starts_with(s.path, p.place))))
    ),
    kept AS (
        INSERT INTO testigo.occurrence AS o (project, analyser, fingerprint, presence, first_n, moved_n, path)
        SELECT :project, analyser, fingerprint, after, :n, :n, path
        FROM moved
        ORDER BY analyser, fingerprint
        ON CONFLICT (project, analyser, fingerprint) DO UPDATE
            SET presence = excluded.presence, path = excluded.path,
                moved_n = CASE WHEN o.presence = excluded.presence THEN o.moved_n ELSE excluded.moved_n END
        RETURNING 1
    ),
    told AS (
        INSERT INTO testigo.occurrence_move (project, analyser, fingerprint, n, happened, at)
        SELECT :project, analyser, fingerprint, :n, happened, now()
        FROM moved
        WHERE happened <> 'appeared'
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM kept) AS moved, (SELECT count(*) FROM told) AS told
    """
)

_MOVED_BY = Statement("UPDATE testigo.project SET moved_by = :n WHERE name = :project")

_LIST = Statement(
    """
    SELECT w.wanted, w.step, w.analyser, w.fingerprint, w.presence, w.first_n, w.moved_n
    FROM (
        SELECT o.*, row_number() OVER (ORDER BY o.analyser, o.fingerprint) AS step,
               CAST(:presence AS text) IS NULL OR o.presence = :presence AS wanted
        FROM testigo.occurrence o
        WHERE o.project = :project AND (o.analyser, o.fingerprint) > (:analyser, :fingerprint)
        ORDER BY o.analyser, o.fingerprint
        LIMIT :walk
    ) AS w
    WHERE w.wanted OR w.step = :walk
    ORDER BY w.analyser, w.fingerprint
    LIMIT :limit + 1
    """
)


def advance_occurrences(c: Connection, locked: Locked, looked: tuple[str, ...], action: str) -> None:
    """Move what the project knows by an analysis that is complete, as a part of its publication.

    The project is held. One of a part of the source moves what lies in that part, and what it reports. An analysis
    that began before one that has moved it already is not for this: it looked at an older source.
    """
    _ADVANCE.rows(
        c,
        analysis=locked.id,
        project=locked.project,
        n=locked.n,
        looked=list(looked),
        scope=None if locked.scope is None else array(locked.scope),
        befores=[row.before for row in MOVES],
        reported=[row.reported for row in MOVES],
        afters=[row.after for row in MOVES],
        happened=[row.happened for row in MOVES],
    )
    _MOVED_BY.rows(c, project=locked.project, n=locked.n)
    lapse_exemptions(c, locked.project, locked.n, action)


@single_statement
def occurrences(
    c: Connection,
    project: str,
    *,
    presence: Presence | None = None,
    after: Cursor | None = None,
    limit: int = 100,
) -> Page[Occurrence]:
    """What a project knows of each fingerprint, in the order of analysers and fingerprints.

    One page looks at `LIMITS.walk_rows` rows at most: see `Page.complete`.
    """
    fields.name(project, field="project")
    check_limit(limit)
    wanted = None if presence is None else fields.member(presence, Presence, field="presence")
    listing = Listing("occurrences", (project, wanted), (a_name, a_name))
    analyser, fingerprint = listing.position(after, ("", ""))
    walk = LIMITS.walk_rows
    asked = {"project": project, "presence": wanted, "analyser": analyser, "fingerprint": fingerprint}
    rows = _LIST.rows(c, **asked, walk=walk, limit=limit)
    last = rows[-1] if rows else None
    mark = (last.analyser, last.fingerprint) if last is not None and last.step == walk else None
    found = [(_occurrence(row), (row.analyser, row.fingerprint)) for row in rows if row.wanted]
    return listing.page(found, limit, mark)


def _occurrence(row: Row[Any]) -> Occurrence:
    return Occurrence(Identity(row.analyser, row.fingerprint), Presence(row.presence), row.first_n, row.moved_n)
