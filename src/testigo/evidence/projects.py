"""Projects: whose source is analysed, as they stand, and as commands hold them."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.read import Cursor, Page
from testigo.authority.read.pages import Listing, a_name, check_limit
from testigo.errors import NotFound
from testigo.evidence.model import AnalysisId, AnalysisState, ProjectView
from testigo.rules import fields
from testigo.rules.evidence.gate import DEFAULT, Policy, Verdict
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["begun", "hold", "project", "projects"]

# The policy that nobody set is written with the project, so that a release that changes it moves no gate.
_MAKE = Statement(
    """
    INSERT INTO testigo.project (name, created_at, policy)
    VALUES (:name, now(), :policy)
    ON CONFLICT (name) DO NOTHING
    """
)

_HOLD = Statement("SELECT * FROM testigo.project WHERE name = :name FOR UPDATE")

_BEGUN = Statement("UPDATE testigo.project SET analyses = analyses + 1 WHERE name = :name RETURNING analyses")

_VIEWS = """
    SELECT p.*, CAST(p.baseline_id AS text) AS baseline, CAST(l.id AS text) AS latest, l.state AS latest_state,
           l.verdict AS latest_verdict
    FROM ($chosen) AS p
         LEFT JOIN LATERAL (
             SELECT a.id, a.state, a.verdict
             FROM testigo.analysis a
             WHERE a.project = p.name AND a.scanner_persisted AND a.scope IS NULL
             ORDER BY a.n DESC
             LIMIT 1
         ) AS l ON true
    ORDER BY p.name
"""

_PROJECT = Statement(_VIEWS.replace("$chosen", "SELECT * FROM testigo.project WHERE name = :name"))

_PROJECTS = Statement(
    _VIEWS.replace("$chosen", "SELECT * FROM testigo.project WHERE name > :after ORDER BY name LIMIT :limit + 1")
)


@single_statement
def project(c: Connection, name: str) -> ProjectView:
    """A project as it stands; raises `NotFound`."""
    fields.name(name, field="project")
    row = _PROJECT.row(c, name=name)
    if row is None:
        raise _unknown(name)
    return _view(row)


@single_statement
def projects(c: Connection, *, after: Cursor | None = None, limit: int = 100) -> Page[ProjectView]:
    """Projects in the order of their names."""
    check_limit(limit)
    listing = Listing("projects", (), (a_name,))
    (start,) = listing.position(after, ("",))
    return listing.page([(_view(row), (row.name,)) for row in _PROJECTS.rows(c, after=start, limit=limit)], limit)


def hold(c: Connection, name: str, *, make: bool) -> Row[Any]:
    """Lock a project's row, as a part of a command, and make it if that is asked; else raises `NotFound`."""
    fields.name(name, field="project")
    if make:
        _MAKE.rows(c, name=name, policy=json.dumps(DEFAULT.to_json(), separators=(",", ":")))
    row = _HOLD.row(c, name=name)
    if row is None:
        raise _unknown(name)
    return row


def begun(c: Connection, name: str) -> int:
    """The number of a project's next analysis; the project is held."""
    (row,) = _BEGUN.rows(c, name=name)
    return int(row.analyses)


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no project {name!r}.", field="project")


def _view(row: Row[Any]) -> ProjectView:
    return ProjectView(
        name=row.name,
        created_at=row.created_at,
        analyses=row.analyses,
        policy=Policy.from_json(json.loads(row.policy)),
        policy_revision=row.policy_revision,
        policy_by=row.policy_by,
        policy_at=row.policy_at,
        policy_reason=row.policy_reason,
        baseline=None if row.baseline is None else AnalysisId(row.baseline),
        latest=None if row.latest is None else AnalysisId(row.latest),
        latest_state=None if row.latest_state is None else AnalysisState(row.latest_state),
        latest_verdict=None if row.latest_verdict is None else Verdict(row.latest_verdict),
    )
