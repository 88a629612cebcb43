"""What the publisher does: bind, pull, publish in one transaction, and only then acknowledge (spec D-05 to D-11).

1. What is published already is only acknowledged: nothing is downloaded or inserted again.
2. The server is asked for every part's result, which it has; a result that is gone is made anew by the same request.
3. Which results these are is saved as the job's checkpoint, before a page is read.
4. Pages and artifacts are copied into a private folder, and artifacts, once they are checked, into the blob store.
5. One transaction publishes, and the lease is checked at its end.
6. Exactly these results are acknowledged. An acknowledgement that fails is the next run's to send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testigo.authority.actions import Action, JobId
from testigo.authority.read import end, job
from testigo.errors import Busy, Error, Invalid, NotFound, ScanEvidenceConflict, StateConflict
from testigo.evidence.analyses import finish
from testigo.evidence.listing import analysis as analysis_of
from testigo.evidence.model import AnalysisId, AnalysisState, NewArtifact, Owner, SealedResult
from testigo.evidence.publication import Acknowledged, Persisted, persisted, publish
from testigo.evidence.sbom.attest import Signer
from testigo.evidence.server.spool import Spool
from testigo.evidence.transport import places
from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.pulling import Pulled, pull
from testigo.evidence.transport.request import Request
from testigo.scan.jobs import Told
from testigo.store.blobs import BlobStore, blobs_directory
from testigo.store.keys import Keyring
from testigo.worker.context import Context
from testigo.worker.publisher import Publishing, publishing

__all__ = ["Bound", "Refused", "published"]

ACTOR = "testigo.publish"
WAIT_SECONDS = 1800.0
"""For a result that is made anew, since the server has lost it."""


class Refused(Exception):
    """Nothing is published, and nothing will be: the analysis has ended. `code` and `message` say why."""

    def __init__(self, error: Error) -> None:
        self.code, self.message = error.code, error.message
        super().__init__(error.message)


@dataclass
class Bound:
    """One part's result in the checkpoint of the job that publishes it (spec D-06)."""

    part: int
    run: str
    request: str
    result: str
    artifact_manifest: str
    provenance: dict[str, str]


def published(ctx: Context, analysis: str) -> Told:
    """Publish the analysis, or acknowledge what of it is published already.

    Raises `Refused` for evidence that does not hold, `StateConflict` for an analysis that has ended or a job that is to
    be cancelled, `Busy` and its like where another try may do better, and `LeaseLost` when the job is not this run's
    any more.
    """
    analysis_id = AnalysisId(analysis)
    own = publishing(ctx)
    with AnalyserClient(places.address(), own.token()) as client:
        there = own.database.run(persisted, analysis_id)
        if there is not None:
            ctx.log("It is published already: only acknowledgements are sent.")
            return _told(there, 0, _acknowledge(client, there.results))
        try:
            repeated = _publish(ctx, own, client, analysis_id)
        except (Invalid, ScanEvidenceConflict, StateConflict) as error:  # no other try would end otherwise
            there = own.database.run(persisted, analysis_id)
            if there is None:
                _end(own, analysis_id, error)
                if isinstance(error, StateConflict):  # its job is to be cancelled, and ends so
                    raise
                raise Refused(error) from error
            repeated = 0
        # Only what the database says now is acknowledged, whatever was believed before (spec D-09, D-11).
        there = own.database.run(persisted, analysis_id)
        if there is None:
            raise Busy("The publication is not there after all.", remedy="Try again.")
        return _told(there, repeated, _acknowledge(client, there.results))


def _publish(ctx: Context, own: Publishing, client: AnalyserClient, analysis_id: AnalysisId) -> int:
    """Publish everything that the parts left; how many findings were said by more than one of them."""
    found = _results(ctx, own, client, analysis_id)
    bound = [
        Bound(n, each.run, each.request, each.result, each.artifact_manifest, dict(each.provenance))
        for n, each in found
    ]
    if ctx.load(list[Bound]) != bound:
        ctx.save(bound)
    with _spool() as folder:
        results = []
        for n, manifest in found:
            ctx.progress(n, len(found), "pulled")
            pulled = pull(client, manifest, folder / str(n))
            results.append(_sealed(n, pulled, _keep_artifacts(own, pulled)))
        ctx.progress(len(found), len(found), "publishing")
        owner = Owner(own.held, own.session_id)
        receipt = own.database.run(publish, analysis_id, results, owner=owner, action=Action(ACTOR))
    return receipt.repeated


def _results(
    ctx: Context, own: Publishing, client: AnalyserClient, analysis_id: AnalysisId
) -> list[tuple[int, Manifest]]:
    """The result of each part that has one, with its number; a part that failed has none, and is missing."""
    asked: list[tuple[int, Request]] = []
    for part in own.database.run(analysis_of, analysis_id).parts:
        ended = own.database.run(end, part.job_id)
        if ended.output is not None and ended.output != "null":
            asked.append((part.n, _request(own, part.job_id)))
    for _, request in asked:  # what is to be made anew is made side by side
        client.ask(request)
    return [(n, client.result(request, within_seconds=min(WAIT_SECONDS, ctx.seconds_left))) for n, request in asked]


def _request(own: Publishing, job_id: JobId) -> Request:
    documents = own.database.run(job, job_id, documents=True).documents
    assert documents is not None
    given: dict[str, Any] = json.loads(documents.payload)
    return Request(given["analyser"], given["root"], tuple(given["files"]), given["options"])


def _keep_artifacts(own: Publishing, pulled: Pulled) -> tuple[NewArtifact, ...]:
    """The artifacts, each exactly what was attested, in the blob store before any row tells of them."""
    if not pulled.manifest.artifacts:
        return ()
    pulled.check_artifacts(Signer.of(Keyring.open(own.keys)).public_key)
    blobs = BlobStore(blobs_directory(own.directory))
    kept = []
    for each in pulled.manifest.artifacts:
        for path in (pulled.artifact(each), pulled.envelope(each)):
            with path.open("rb") as file:
                blobs.put(file)
        kept.append(NewArtifact(each.name, each.media_type, each.bytes, each.digest, each.raw_digest, each.attestation))
    return tuple(kept)


def _sealed(n: int, pulled: Pulled, artifacts: tuple[NewArtifact, ...]) -> SealedResult:
    manifest = pulled.manifest
    return SealedResult(
        part=n,
        analyser=manifest.analyser,
        analyser_version=manifest.analyser_version,
        run=manifest.run,
        request=manifest.request,
        result=manifest.result,
        started_at=manifest.started_at,
        ended_at=manifest.ended_at,
        outcome=manifest.outcome,
        reasons=manifest.reasons,
        coverage=manifest.coverage,
        findings=manifest.findings,
        pages=pulled.pages,
        artifacts=artifacts,
        artifact_manifest=manifest.artifact_manifest,
        provenance=manifest.provenance,
    )


def _acknowledge(client: AnalyserClient, results: Sequence[Acknowledged]) -> int:
    """Say of each result that it is published; one that the server does not know any more is cleaned already."""
    for each in results:
        try:
            client.acknowledge(each)
        except NotFound:
            continue
    return len(results)


def _end(own: Publishing, analysis_id: AnalysisId, error: Error) -> None:
    """The analysis gets no evidence; one that ended before stays as it is."""
    why = f"{error.code}: {error.message}"
    state = AnalysisState.CANCELLED if isinstance(error, StateConflict) else AnalysisState.FAILED
    own.database.run(finish, analysis_id, state, reason=why, action=Action(ACTOR))


def _told(there: Persisted, repeated: int, cleaned: int) -> Told:
    return Told(str(there.state), str(there.verdict), there.findings, repeated, there.artifacts, cleaned)


@contextmanager
def _spool() -> Iterator[Path]:
    """A folder for this publication alone; one that a publisher left that was killed is removed by the next."""
    spool = Spool.open()
    try:
        yield spool.folder
    finally:
        spool.close()
