"""A finding's identity is the same in every implementation."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from testigo.rules import identity
from testigo.rules.evidence import fingerprint

VECTORS: dict[str, Any] = json.loads((files("testigo.rules.evidence") / "fingerprint_vectors.json").read_text("utf-8"))


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
def test_each_published_vector_is_reached(vector: dict[str, Any]) -> None:
    """Digest and canonical bytes belong together, as published (spec P-06, D-18)."""
    made = getattr(fingerprint, vector["function"])(**vector["arguments"])
    assert made == vector["digest"] == identity.content_digest(vector["canonical"])
    assert identity.canonical(json.loads(vector["canonical"])).decode() == vector["canonical"]


def test_no_two_vectors_are_one_finding() -> None:
    """Each part of an identity tells findings apart (spec D-18)."""
    assert len({vector["digest"] for vector in VECTORS["vectors"]}) == len(VECTORS["vectors"])
    assert {vector["function"] for vector in VECTORS["vectors"]} == {"computed", "given"}


@pytest.mark.parametrize("vector", VECTORS["contexts"], ids=lambda vector: vector["name"])
def test_each_published_context_is_reached(vector: dict[str, Any]) -> None:
    """White space does not make another finding, nor do the numbers of a message (field case R83)."""
    assert fingerprint.context(vector["snippet"], vector["message"]) == vector["context"]
