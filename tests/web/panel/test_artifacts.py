"""Artifacts are downloaded whole and verified, or not at all (spec D-15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.access.roles import Role
from testigo.authority.actions import new_id
from testigo.store.blobs import BlobStore
from tests.web.conftest import Site
from tests.web.panel.dossier import DSSE, SBOM, with_artifact
from tests.web.panel.paper import paper


def kept(folder: Path, digest: str) -> Path:
    """The file of a blob."""
    name = digest.removeprefix("sha256:")
    return folder / "sha256" / name[:2] / name[2:]


def test_an_artifact_leaves_as_a_file_that_no_browser_shows(site: Site, tmp_path: Path) -> None:
    """As an attachment, of the type that was indexed, never guessed, of a name that leaves no folder."""
    view = with_artifact(site, tmp_path, name='../"sbom\n.json')
    client = site.as_(Role.OPERATOR)
    answer = client.get(f"/horizon/artifacts/{view.id}/download")
    assert answer.content == SBOM
    assert answer.headers["content-type"] == "application/vnd.cyclonedx+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == 'attachment; filename="_sbom_.json"'
    assert answer.headers["content-length"] == str(len(SBOM))
    assert client.get(f"/horizon/artifacts/{view.id}/attestation").content == DSSE
    page = paper(client.get(f"/horizon/analyses/{view.analysis_id}"))
    assert f"/horizon/artifacts/{view.id}/download" in page.html


@pytest.mark.parametrize("change", ["longer", "shorter", "other", "gone", "link"])
def test_bytes_that_are_not_those_that_were_indexed_do_not_leave(site: Site, tmp_path: Path, change: str) -> None:
    """Not one of them: the refusal comes in their place, whatever became of the file."""
    view = with_artifact(site, tmp_path)
    file = kept(tmp_path, view.digest)
    match change:
        case "longer":
            file.write_bytes(SBOM + b"\n")
        case "shorter":
            file.write_bytes(SBOM[:-1])
        case "other":
            file.write_bytes(SBOM.replace(b"1.6", b"1.5"))
        case "gone":
            file.unlink()
        case "link":
            elsewhere = tmp_path / "elsewhere"
            elsewhere.write_bytes(SBOM)
            file.unlink()
            file.symlink_to(elsewhere)
    for path in (f"/horizon/artifacts/{view.id}/download", f"/api/v1/artifacts/{view.id}/content"):
        answer = site.as_(Role.ADMIN).get(path)
        assert answer.status_code >= 400, change
        assert b"bomFormat" not in answer.content
        assert "content-disposition" not in answer.headers


def test_only_who_sees_documents_downloads(site: Site, tmp_path: Path) -> None:
    """Others see that it is there; what is not there is not found."""
    view = with_artifact(site, tmp_path)
    for role, status in ((Role.VIEWER, 403), (Role.OPERATOR, 200), (Role.REVIEWER, 200), (Role.ADMIN, 200)):
        for path in ("download", "attestation"):
            assert site.as_(role).get(f"/horizon/artifacts/{view.id}/{path}").status_code == status
    page = paper(site.as_(Role.VIEWER).get(f"/horizon/analyses/{view.analysis_id}"))
    assert "sbom.json" in page.text
    assert "/download" not in page.html
    assert site.as_(Role.ADMIN).get(f"/horizon/artifacts/{new_id()}/download").status_code == 404
    site.app.state.blobs = BlobStore(tmp_path / "another")
    assert "TESTIGO_BLOBS" in paper(site.as_(Role.ADMIN).get(f"/horizon/artifacts/{view.id}/download"), 422).text
