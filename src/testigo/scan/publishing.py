"""What the publisher does: bind, pull, publish in one transaction, and only then acknowledge (spec D-05 to D-11).

0. The analysis is this job's to publish, or nothing of it is touched.
1. What is published already is only acknowledged: nothing is downloaded or inserted again.
2. The server is asked for every part's result, which it has; a result that is gone is made anew by the same request.
3. Which results these are is saved as the job's checkpoint, before a page is read.
4. Pages and artifacts are copied into a private folder, and artifacts, once they are checked, into the blob store.
5. One transaction publishes, and the lease is checked at its end.
6. Exactly these results are acknowledged. An acknowledgement that fails is the next run's to send; the last run of
   all leaves it to the server's own time limit, and says so. What is published stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testigo.authority.actions import Action
from testigo.authority.read import end
from testigo.errors import (
    Busy,
    Error,
    Invalid,
    NotFound,
    ScanEvidenceConflict,
    StateConflict,
    StoragePressure,
    WrongPublisher,
)
from testigo.evidence.analyses import finish
from testigo.evidence.following import check_publisher, left_by_parts
from testigo.evidence.model import AnalysisId, AnalysisState, NewArtifact, Owner, SealedResult
from testigo.evidence.publication import Acknowledged, Persisted, persisted, publish
from testigo.evidence.sbom.attest import Signer
from testigo.evidence.server.spool import Spool
from testigo.evidence.transport import places
from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.pulling import Pulled, pull
from testigo.evidence.transport.request import Request
from testigo.rules.identity import canonical, content_digest
from testigo.rules.states import State
from testigo.scan.asked import request_of
from testigo.scan.jobs import ATTEMPTS, Told, limitation
from testigo.store.blobs import BlobStore, blobs_directory
from testigo.store.keys import Keyring
from testigo.worker.context import Context
from testigo.worker.endings import Degraded
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
    """One part's result in the checkpoint of the job that publishes it (spec D-06).

    `binding` is the digest of its run, request, result, artifact manifest and provenance together: a checkpoint that
    spelled them out would have no room for the parts of a large tree.
    """

    part: int
    run: str
    binding: str

    @classmethod
    def to(cls, part: int, manifest: Manifest) -> Bound:
        """What binds a part to this result."""
        told = {
            "run": manifest.run,
            "request": manifest.request,
            "result": manifest.result,
            "artifact_manifest": manifest.artifact_manifest,
            "provenance": dict(manifest.provenance),
        }
        return cls(part, manifest.run, content_digest(canonical(told)))


def published(ctx: Context, analysis: str) -> Told | Degraded[Told]:
    """Publish the analysis, or acknowledge what of it is published already.

    Raises `Refused` for evidence that does not hold and for an analysis that has ended or is another job's,
    `StateConflict` for a job that is to be cancelled, `Busy` and its like where another try may do better, and
    `LeaseLost` when the job is not this run's any more.
    """
    analysis_id = AnalysisId(analysis)
    own = publishing(ctx)
    try:
        own.database.run(check_publisher, analysis_id, own.held.job_id)
    except (Invalid, NotFound, WrongPublisher) as error:
        raise Refused(error) from error
    with AnalyserClient(places.address(), own.token()) as client:
        there, repeated = own.database.run(persisted, analysis_id), 0
        if there is not None:
            ctx.log("It is published already: only acknowledgements are sent.")
        else:
            there, repeated = _published(ctx, own, client, analysis_id)
        cleaned, limitation = _acknowledge(ctx, client, there.results)
    told = Told(str(there.state), str(there.verdict), there.findings, repeated, there.artifacts, cleaned)
    return told if limitation is None else Degraded(told, limitations=[limitation])


def _published(ctx: Context, own: Publishing, client: AnalyserClient, analysis_id: AnalysisId) -> tuple[Persisted, int]:
    """What is published then, and how many findings were said by more than one part."""
    try:
        repeated = _publish(ctx, own, client, analysis_id)
    except (Invalid, ScanEvidenceConflict, StateConflict) as error:  # no other try would end otherwise
        there = own.database.run(persisted, analysis_id)
        if there is None:
            stops = own.database.run(end, own.held.job_id).state is State.CANCELLING
            _end(own, analysis_id, error, AnalysisState.CANCELLED if stops else AnalysisState.FAILED)
            if stops:
                raise
            raise Refused(error) from error
        repeated = 0
    # Only what the database says now is acknowledged, whatever was believed before (spec D-09, D-11).
    there = own.database.run(persisted, analysis_id)
    if there is None:
        raise Busy("The publication is not there after all.", remedy="Try again.")
    return there, repeated


def _publish(ctx: Context, own: Publishing, client: AnalyserClient, analysis_id: AnalysisId) -> int:
    """Publish everything that the parts left; how many findings were said by more than one of them."""
    found, missing = _results(ctx, own, client, analysis_id)
    bound = [Bound.to(n, each) for n, each in found]
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
        receipt = own.database.run(publish, analysis_id, results, missing=missing, owner=owner, action=Action(ACTOR))
    return receipt.repeated


def _results(
    ctx: Context, own: Publishing, client: AnalyserClient, analysis_id: AnalysisId
) -> tuple[list[tuple[int, Manifest]], dict[int, str]]:
    """The result of each part that has one, with its number; and why each of the others is missing."""
    asked: list[tuple[int, Request]] = []
    missing: dict[int, str] = {}
    for left in own.database.run(left_by_parts, analysis_id):
        request = None if left.why else own.database.run(request_of, left.job_id)
        if request is None:
            missing[left.n] = left.why or "what its job was asked is not kept any more"
        else:
            asked.append((left.n, request))
    with suppress(StoragePressure):  # what is to be made anew is made side by side, as far as there is room
        for _, request in asked:
            client.ask(request)
    within = [(n, client.result(request, within_seconds=min(WAIT_SECONDS, ctx.seconds_left))) for n, request in asked]
    return within, missing


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


def _acknowledge(ctx: Context, client: AnalyserClient, results: Sequence[Acknowledged]) -> tuple[int, str | None]:
    """Say of each result that it is published; one that the server does not know any more is cleaned already.

    Returns how many are cleaned, and what the job's last run has to say of the others: that fails nothing.
    """
    cleaned = 0
    for each in results:
        try:
            client.acknowledge(each)
        except NotFound:
            pass
        except Error as error:
            if ctx.failures + 1 < ATTEMPTS:
                raise
            left = len(results) - cleaned
            return cleaned, limitation(f"{left} {'result is' if left == 1 else 'results are'} not acknowledged", error)
        cleaned += 1
    return cleaned, None


def _end(own: Publishing, analysis_id: AnalysisId, error: Error, state: AnalysisState) -> None:
    """The analysis gets no evidence; one that ended before stays as it is."""
    own.database.run(finish, analysis_id, state, reason=f"{error.code}: {error.message}", action=Action(ACTOR))


@contextmanager
def _spool() -> Iterator[Path]:
    """A folder for this publication alone; one that a publisher left that was killed is removed by the next."""
    spool = Spool.open()
    try:
        yield spool.folder
    finally:
        spool.close()
