"""However a tool writes where it found something, it is one canonical path inside the root, or refused."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from testigo.errors import EvidenceInvalid
from testigo.rules.evidence.paths import PathFault, of_path, of_uri, to_uri, why_not_canonical
from testigo.settings import EVIDENCE

VECTORS: dict[str, Any] = json.loads((files("testigo.rules.evidence") / "path_vectors.json").read_text("utf-8"))

ROOT = "/work/shop"
ON_A_DRIVE = "C:\\work\\shop"

pieces = st.sampled_from(
    [
        "/",
        "\\",
        ".",
        "..",
        "%",
        "%2e",
        "%2F",
        "%5C",
        "%41",
        "%00",
        "%ff",
        "#",
        "?",
        " ",
        ":",
        "a",
        "é",
        "C:",
        "file:",
        "//",
        "~",
    ]
)
places = st.lists(pieces | st.text(max_size=3), max_size=12).map("".join)
names = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="/"), min_size=1, max_size=8
)
canonical_paths = st.lists(names, min_size=1, max_size=5).map("/".join).filter(lambda path: not why_not_canonical(path))


def read(vector: dict[str, Any]) -> str:
    """What a vector's reading makes of its value."""
    how = of_uri if vector["read"] == "uri" else of_path
    return how(vector["value"], root=vector["root"], base=vector["base"])


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
def test_each_published_place_is_reached(vector: dict[str, Any]) -> None:
    """Spaces, percent signs, hashes, letters, backslashes, drives and bases (field case R81)."""
    assert read(vector) == vector["path"]
    assert why_not_canonical(vector["path"]) is None


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["name"])
def test_each_published_refusal_has_its_reason(vector: dict[str, Any]) -> None:
    """What is outside, elsewhere or no text at all is refused, and it is said why (field case R81)."""
    with pytest.raises(EvidenceInvalid) as caught:
        read(vector)
    assert caught.value.facts["reason"] == vector["reason"]
    assert caught.value.field == vector["read"]


def test_every_reason_but_the_length_is_published() -> None:
    """The vectors leave no refusal out."""
    assert {vector["reason"] for vector in VECTORS["refused"]} == set(PathFault) - {PathFault.TOO_LONG}


@given(places, places, st.sampled_from([ROOT, ON_A_DRIVE, "/"]), st.booleans())
@example("%2e%2e%2f%2e%2e%2fetc", "", ROOT, True)
def test_nothing_gets_out_of_the_root(place: str, base: str, root: str, uri: bool) -> None:
    """Whatever a place and its base are, the path is canonical, and reading it again changes nothing (R81)."""
    try:
        path = (of_uri if uri else of_path)(place, root=root, base=base)
    except EvidenceInvalid:
        return
    assert why_not_canonical(path) is None
    assert of_path(path, root=root) == path
    assert of_uri(to_uri(path), root=root) == path


@given(canonical_paths)
def test_a_canonical_path_becomes_a_uri_and_comes_back(path: str) -> None:
    """What is exported is read as what it was, and so is its raw form (field case R81)."""
    uri = to_uri(path)
    assert uri.isascii()
    assert of_uri(uri, root=ROOT) == of_uri(f"file://{ROOT}/{uri}", root=ROOT) == path
    assert of_path(path, root=ROOT) == of_path(f"{ROOT}/{path}", root=ROOT) == path


def test_a_path_is_as_long_as_paths_may_be() -> None:
    """The limit is in bytes, is allowed itself, and holds for what is decoded."""
    longest = "é" * (EVIDENCE.path_bytes_max // 2)
    assert of_uri(to_uri(longest), root=ROOT) == longest
    for far in (longest + "a", "a" * 1_000_000):
        with pytest.raises(EvidenceInvalid) as caught:
            of_uri(far, root=ROOT)
        assert caught.value.facts["reason"] == PathFault.TOO_LONG
        assert caught.value.limit == "4096 bytes"


@pytest.mark.parametrize("root", ["", "work", "C:work", "./work"])
def test_a_root_is_absolute(root: str) -> None:
    """The root is what all is measured by."""
    with pytest.raises(EvidenceInvalid, match="root"):
        of_path("a.py", root=root)


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("src/a.py", None),
        ("a\\b", None),
        ("/a", "outside"),
        ("a/", "outside"),
        ("a//b", "outside"),
        ("./a", "outside"),
        ("a/../b", "outside"),
        ("c:/a", "drive"),
        ("a\nb", "control"),
        ("", "empty"),
        (None, "not_text"),
    ],
)
def test_what_is_canonical_is_told(path: object, fault: str | None) -> None:
    """A page that carries another form of a path is refused by this (spec D-07)."""
    assert why_not_canonical(path) == fault
