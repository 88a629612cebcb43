"""The artifacts of analyses: what is indexed of each, against which a download is checked (spec D-15)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from testigo.errors import NotFound
from testigo.evidence.model import AnalysisId, ArtifactId, ArtifactView
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["artifact", "artifacts"]

_ONE = Statement(
    "SELECT *, CAST(id AS text) AS name_of, CAST(analysis_id AS text) AS analysis FROM testigo.artifact "
    "WHERE id = CAST(:id AS uuid)"
)

_LIST = Statement(
    """
    SELECT *, CAST(id AS text) AS name_of, CAST(analysis_id AS text) AS analysis
    FROM testigo.artifact
    WHERE analysis_id = CAST(:analysis AS uuid)
    ORDER BY name, id
    LIMIT :limit
    """
)


@single_statement
def artifacts(c: Connection, analysis_id: AnalysisId) -> tuple[ArtifactView, ...]:
    """The artifacts of an analysis in the order of their names: at most 1,000."""
    fields.must_be_id(analysis_id, field="analysis")
    return tuple(_view(row) for row in _LIST.rows(c, analysis=analysis_id, limit=LIMITS.page_max))


@single_statement
def artifact(c: Connection, artifact_id: ArtifactId) -> ArtifactView:
    """What is indexed of one artifact; raises `NotFound`."""
    fields.must_be_id(artifact_id, field="artifact")
    row = _ONE.row(c, id=artifact_id)
    if row is None:
        raise NotFound(f"There is no artifact {artifact_id}.", field="artifact")
    return _view(row)


def _view(row: Row[Any]) -> ArtifactView:
    return ArtifactView(
        id=ArtifactId(row.name_of),
        analysis_id=AnalysisId(row.analysis),
        part=row.part,
        name=row.name,
        media_type=row.media_type,
        bytes=row.bytes,
        digest=row.digest,
        raw_digest=row.raw_digest,
        attestation=row.attestation,
        published_at=row.published_at,
    )
