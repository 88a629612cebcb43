"""An installation in which every operation of the API finds something that it is for, and a server that never tires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from testigo.evidence.model import AnalysisId, ArtifactView, FindingId
from tests.browser.installation import Installation, shop
from tests.evidence.store.kit import going, listed
from tests.web.conftest import PATIENT, Site, served
from tests.web.panel.dossier import dossier, with_artifact
from tests.world import World

__all__ = ["Inhabited", "inhabited"]

UNLIMITED = replace(PATIENT, requests_per_second=1e6, requests_burst=10**6)


@dataclass(frozen=True)
class Inhabited:
    """The site, what the shop is made of, and its evidence: `published` has the findings, and `begun` goes on."""

    site: Site
    made: Installation
    published: AnalysisId
    begun: AnalysisId
    findings: Sequence[FindingId]
    artifact: ArtifactView

    @property
    def named(self) -> Mapping[str, Sequence[str]]:
        """What there is, by the parameter of a path that takes its id or name."""
        return {
            "job_id": [*self.made.jobs.values(), *self.made.failed],
            "operation_id": [self.made.operation],
            "session_id": [self.made.worker, self.made.dead],
            "analysis_id": [self.published, self.begun],
            "finding_id": self.findings,
            "artifact_id": [self.artifact.id],
        }


@contextmanager
def inhabited(database_url: str, world: World, folder: Path) -> Iterator[Inhabited]:
    """Such a site on an empty installation; blobs are in this folder."""
    made = shop(world)
    with served(database_url, world, UNLIMITED) as site:
        artifact = with_artifact(site, folder)
        published, begun = dossier(site), going(world).id
        findings = [view.id for view in listed(world, published).values()]
        yield Inhabited(site, made, published, begun, findings, artifact)
