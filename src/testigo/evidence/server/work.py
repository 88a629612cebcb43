"""One run, in a process of its own: the analyser's program, its report read, and what was found sealed.

The server gives it a folder with an `order`, and finds there what came of it: `findings`, `artifacts`, and last of
all `sealed`, which names them. Nothing raw stays: what programs wrote is removed before the result is sealed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from testigo.errors import Error, EvidenceInvalid
from testigo.evidence.analysers import Command, Task, analyser, read
from testigo.evidence.reported import Attached, Reading, Trouble
from testigo.evidence.server import confined
from testigo.evidence.server.confined import Limits
from testigo.evidence.server.roots import Granted
from testigo.evidence.server.spool import size_of
from testigo.evidence.server.tree import copied
from testigo.evidence.transport.manifest import ARTIFACTS_MAX, REASON_BYTES_MAX, Attested, Manifest
from testigo.evidence.transport.pages import Laid, Slice, lay_out
from testigo.evidence.transport.request import Request
from testigo.rules.discreet import discreet
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.sealing import Draft, sealed
from testigo.rules.evidence.severity import SEVERITIES
from testigo.rules.identity import canonical, content_digest
from testigo.rules.text import tidy
from testigo.settings import EVIDENCE

__all__ = ["Order", "Sealed", "artifact_path", "failed"]

FIRST = "0." + "0" * 64
"""What stands for the cursor of the first page until the server puts its own there."""
MEMORY_BYTES = 4 * 1024**3
"""What the process that reads and seals may reserve; hostile reports end it before they end the machine."""
COMMAND_BYTES_MAX = 1024

_FOLDERS = re.compile(r"(?<![^ =])/(?:[^ /]*/)*")
"""The folders of an absolute path, of which only the last name says how a program was run."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the server tells the process."""

    run: str
    request: dict[str, Any]
    apart: str
    keys: str | None
    limits: dict[str, float]
    confinement: tuple[str, ...]
    in_memory: bool
    server: int
    granted: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sealed:
    """What it leaves: the manifest, and where the pages lie in the file of findings."""

    manifest: Manifest
    slices: tuple[Slice, ...]

    def write(self, folder: Path) -> None:
        """Write it whole or not at all."""
        new = folder / "sealed.new"
        new.write_bytes(canonical({"manifest": self.manifest.to_json(), "slices": [asdict(s) for s in self.slices]}))
        new.rename(folder / "sealed")

    @classmethod
    def read(cls, folder: Path) -> Sealed:
        """What was written. Raises `OSError` or `ValueError` where nothing was."""
        found = json.loads((folder / "sealed").read_bytes())
        return cls(Manifest.from_json(found["manifest"]), tuple(Slice(**each) for each in found["slices"]))


@dataclass(slots=True)
class Gathered:
    """Everything in a report, sorted."""

    drafts: list[Draft]
    attached: list[Attached]
    skipped: dict[str, str]
    failed: dict[str, str]
    troubles: list[str]

    @classmethod
    def of(cls, readings: Iterable[Reading], left: dict[str, str]) -> Gathered:
        """What the analyser reported, beside the files that it was not given."""
        found = cls([], [], {}, dict(left), [])
        for each in readings:
            if isinstance(each, Draft):
                found.drafts.append(each)
            elif isinstance(each, Attached):
                found.attached.append(each)
            elif isinstance(each, Trouble):
                found.troubles.append(_fit(each.reason))
            else:
                (found.failed if each.failed else found.skipped).setdefault(each.path, each.reason)
        if len(found.attached) > ARTIFACTS_MAX:
            raise EvidenceInvalid("it has too many artifacts", field="artifacts", limit=str(ARTIFACTS_MAX))
        return found


def main(folder: Path) -> None:
    """Carry out the order that lies in `folder`; whatever goes wrong becomes a result that says so."""
    found = json.loads((folder / "order").read_bytes())
    order = Order(**{**found, "confinement": tuple(found["confinement"])})
    confined.die_with_parent(order.server)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # on the way out it ends what it has started
    os.umask(0o077)
    for what, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_FSIZE, int(order.limits["output_bytes"]))):
        _, hard = resource.getrlimit(what)
        with suppress(ValueError):  # not every system limits all of this
            resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    request = Request.from_json(order.request)
    began = datetime.now(UTC)
    try:
        result = _carried_out(order, request, folder, began)
    except Error as error:
        bound = f" (at most {error.limit})" if error.limit else ""
        result = failed(order.run, request, began, f"{error.message}{bound}")
    except OSError as error:
        result = failed(order.run, request, began, f"its result could not be kept: {error.strerror or error}")
    except Exception as error:  # whatever a report or a program brings about is a result, too
        result = failed(order.run, request, began, f"its report could not be read: {type(error).__name__}")
    has_failed = result.manifest.outcome is Outcome.FAILED
    for name in ("work", "tree", *(("findings", "artifacts") if has_failed else ())):
        shutil.rmtree(folder / name, ignore_errors=True)
    result.write(folder)


def failed(run: str, request: Request, began: datetime, why: str) -> Sealed:
    """The result of a run that has none: no findings, no artifacts, and no file analysed."""
    reason = _fit(why)
    coverage = Coverage.of(request.files, skipped={}, failed=dict.fromkeys(request.files, "the analyser failed"))
    manifest = _manifest(run, request, "unknown", began, {"host": platform.node() or "unknown"})
    return Sealed(replace(manifest, outcome=Outcome.FAILED, reasons=(reason,), coverage=coverage), ())


def artifact_path(folder: Path, digest: str) -> Path:
    """Where the bytes of that digest lie, which is written as it must be."""
    return folder / "artifacts" / digest.removeprefix("sha256:")


def _carried_out(order: Order, request: Request, folder: Path, began: datetime) -> Sealed:
    chosen = analyser(request.analyser, apart=Path(order.apart))
    release = chosen.version()
    limits = Limits(**order.limits)  # type: ignore[arg-type]  # JSON has one kind of number
    work = folder / "work"
    work.mkdir(mode=0o700)
    granted = Granted.from_json(order.granted)
    tree = granted.tree(request)  # once more: links may have changed since it was asked
    task = Task(Path(request.root), request.files, work, granted.options(request), granted.report(request))
    if not task.root.is_dir():
        raise EvidenceInvalid("the root is no folder that can be read", field="root")
    left: dict[str, str] = {}
    command = chosen.command(task)
    ended = None
    if command is not None:
        left = copied(tree, request.files, folder / "tree", bytes_max=limits.output_bytes)
        there = tuple(file for file in request.files if file not in left)
        task = replace(task, root=folder / "tree", files=there)
        command = chosen.command(task)
    if command is not None:
        left_over = limits.output_bytes - size_of(folder / "tree")
        within = replace(limits, output_bytes=max(1, left_over))
        ended = confined.run(command, root=task.root, work=work, limits=within, confinement=order.confinement)
    provenance = _provenance(order, task, command)
    gathered = Gathered.of(read(chosen, task, command, ended), left)
    manifest = _manifest(order.run, request, release, began, provenance)
    return _sealed(manifest, request, gathered, order, folder)


def _sealed(manifest: Manifest, request: Request, gathered: Gathered, order: Order, folder: Path) -> Sealed:
    findings = sealed(gathered.drafts)
    gathered.drafts.clear()
    (folder / "findings").mkdir(mode=0o700)
    with (folder / "findings" / "lines").open("xb") as file:
        laid = lay_out(_of(manifest.analyser, findings), file)
    # A report of another tool has a scope of its own, of which it names what it did not analyse.
    scope = request.files or {*gathered.skipped, *gathered.failed}
    coverage = Coverage.of(scope, skipped=gathered.skipped, failed=gathered.failed)
    gaps = [] if coverage.whole else [_uncovered(coverage)]
    reasons = tuple(dict.fromkeys([*gaps, *gathered.troubles]))[: EVIDENCE.reasons_max]
    artifacts = tuple(sorted(_artifacts(gathered.attached, order, folder), key=lambda each: each.name))
    return Sealed(
        replace(
            _laid(manifest, laid),
            ended_at=datetime.now(UTC),
            outcome=Outcome.INCOMPLETE if reasons else Outcome.COMPLETE,
            reasons=reasons,
            coverage=coverage,
            artifacts=artifacts,
            artifact_manifest=Manifest.digest_of(artifacts),
        ),
        laid.slices,
    )


def _manifest(run: str, request: Request, release: str, began: datetime, provenance: dict[str, str]) -> Manifest:
    """The manifest of nothing, which the rest is put into."""
    return Manifest(
        run=run,
        request=request.digest,
        analyser=request.analyser,
        analyser_version=tidy(release)[:200] or "unknown",
        started_at=began,
        ended_at=datetime.now(UTC),
        outcome=Outcome.COMPLETE,
        reasons=(),
        result=content_digest(b""),
        findings=0,
        bytes=0,
        pages=0,
        summary=dict.fromkeys(SEVERITIES, 0),
        coverage=Coverage(),
        artifacts=(),
        artifact_manifest=Manifest.digest_of(()),
        provenance=provenance,
        cursor=None,
    )


def _laid(manifest: Manifest, laid: Laid) -> Manifest:
    return replace(
        manifest,
        result=laid.result,
        findings=laid.findings,
        bytes=laid.bytes,
        pages=len(laid.slices),
        summary=laid.summary,
        cursor=FIRST if laid.slices else None,
    )


def _of(name: str, findings: Iterable[Finding]) -> Iterable[Finding]:
    """The findings, each of which says that it is the analyser's that ran."""
    for finding in findings:
        if finding.analyser != name:
            raise EvidenceInvalid("it reports in the name of another analyser", field="analyser")
        yield finding


def _artifacts(attached: Iterable[Attached], order: Order, folder: Path) -> Iterable[Attested]:
    """Each artifact with an envelope that is signed with the installation's key."""
    found = list(attached)
    if not found:
        return
    if order.keys is None:
        raise EvidenceInvalid("the server has no key to sign artifacts with", field="artifacts")
    from testigo.evidence.sbom.attest import Signer, statement
    from testigo.store.keys import Keyring

    signer = Signer.of(Keyring.open(Path(order.keys)))
    (folder / "artifacts").mkdir(mode=0o700)
    for each in found:
        digest = content_digest(each.body)
        envelope = signer.envelope(statement(each.name, digest=digest, raw_digest=each.raw_digest, notes=each.notes))
        attestation = content_digest(envelope)
        artifact_path(folder, digest).write_bytes(each.body)
        artifact_path(folder, attestation).write_bytes(envelope)
        yield Attested(each.name, each.media_type, len(each.body), digest, each.raw_digest, attestation)


def _provenance(order: Order, task: Task, command: Command | None) -> dict[str, str]:
    """Where and how it was run, without the names of files and folders, and without secrets."""
    told = {
        "host": platform.node() or "unknown",
        "python": platform.python_version(),
        "testigo": version("testigo"),
        "spool": "memory" if order.in_memory else "disk",
        "files": str(len(task.files)),
    }
    if command is not None:
        said = " ".join(part for part in command.args if not part.startswith("./"))
        told["command"] = discreet(_FOLDERS.sub("", said), bytes_max=COMMAND_BYTES_MAX)
        told["network"] = "none" if order.confinement else "open"
    return {name: _fit(text) for name, text in told.items()}


def _uncovered(coverage: Coverage) -> str:
    return f"of {coverage.in_scope} files {coverage.skipped_total} were skipped and {coverage.failed_total} failed"


def _fit(text: str) -> str:
    return discreet(text, bytes_max=REASON_BYTES_MAX) or "unknown"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
