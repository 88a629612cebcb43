"""What the publisher keeps while it works fits into its job, however many parts there are (spec D-06)."""

from __future__ import annotations

from dataclasses import asdict, replace

from testigo.rules.documents import encode
from testigo.scan.publishing import Bound
from testigo.settings import LIMITS
from tests.evidence.transport.results import manifest as made


def test_the_checkpoint_has_room_for_as_many_parts_as_there_may_be() -> None:
    """Whatever their provenance says."""
    manifest = made()
    bound = [Bound.to(n, manifest) for n in range(LIMITS.parents_max)]
    assert len(encode([asdict(each) for each in bound]).encode()) <= LIMITS.inline_bytes_max


def test_another_result_is_bound_otherwise() -> None:
    """By its run, request, digest, artifacts and provenance, each alone."""
    manifest = made()
    others = [
        replace(manifest, run="0198f3c2-0000-7000-8000-00000000000f"),
        replace(manifest, request="sha256:" + "0" * 64),
        replace(manifest, result="sha256:" + "0" * 64),
        replace(manifest, artifact_manifest="sha256:" + "0" * 64),
        replace(manifest, provenance={"host": "another"}),
    ]
    bound = {Bound.to(0, each).binding for each in (manifest, *others)}
    assert len(bound) == 1 + len(others)
    assert Bound.to(0, manifest) == Bound.to(0, manifest)
