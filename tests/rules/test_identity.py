"""One encoding for every identity, the same in every implementation, and no two things with one key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.resources import files
from itertools import permutations
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules import identity
from testigo.rules.faults import SAFE_INTEGER_MAX

VECTORS: dict[str, Any] = json.loads((files("testigo.rules") / "vectors.json").read_text("utf-8"))

fit_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
safe_integers = st.integers(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX)
members = st.dictionaries(
    fit_text,
    st.recursive(
        st.none() | st.booleans() | safe_integers | st.floats(allow_nan=False, allow_infinity=False) | fit_text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(fit_text, inner, max_size=4),
        max_leaves=15,
    ),
    max_size=5,
)
digests = st.binary(max_size=2).map(identity.content_digest)


class Colour(StrEnum):
    """A text that is more than a text."""

    RED = "red"


def sha256(data: bytes) -> str:
    """The digest as anybody can take it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def called(vector: Mapping[str, Any]) -> str:
    """What the function that a vector names makes of its arguments."""
    function: Callable[..., str] = getattr(identity, vector["function"])
    return function(**vector["arguments"])


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
def test_each_published_vector_is_reached(vector: dict[str, Any]) -> None:
    """Digest, canonical bytes and object belong together, as published (spec A-09, P-06)."""
    canonical: str = vector["canonical"]
    assert called(vector) == vector["digest"] == sha256(canonical.encode())
    assert rfc8785.dumps(json.loads(canonical, parse_int=float)) == canonical.encode()
    assert json.loads(canonical)["v"] == VECTORS["version"] == identity.VERSION


@pytest.mark.parametrize("vector", VECTORS["content"], ids=lambda vector: vector["name"])
def test_content_is_hashed_as_it_is(vector: dict[str, Any]) -> None:
    """A document's digest is that of its UTF-8, with nothing added (spec P-06)."""
    text: str = vector["text"]
    assert identity.content_digest(text) == identity.content_digest(text.encode()) == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["name"])
def test_each_published_refusal_names_its_field(vector: dict[str, Any]) -> None:
    """What other implementations might hash otherwise is refused by field (spec P-06)."""
    with pytest.raises(Invalid) as caught:
        called(vector)
    assert caught.value.field == vector["field"]


def test_the_vectors_cover_every_identity_and_are_all_different() -> None:
    """No identity is published without vectors, and no two vectors share a digest (spec A-09)."""
    assert {vector["function"] for vector in VECTORS["vectors"]} == {
        "attempt_key",
        "command_digest",
        "effect_key",
        "product_key",
        "request_digest",
    }
    published = [vector["digest"] for vector in VECTORS["vectors"]]
    assert len(set(published)) == len(published)


@given(members)
def test_canonical_bytes_are_those_of_rfc_8785(value: dict[str, Any]) -> None:
    """The quick way and the standard's library write the same bytes (spec P-06)."""
    assert identity.canonical(value) == rfc8785.dumps(value)


@given(st.dictionaries(fit_text, safe_integers | fit_text))
def test_the_order_in_which_members_are_given_does_not_matter(value: dict[str, Any]) -> None:
    """An object is its members; RFC 8785 sorts them by UTF-16 units (spec P-06)."""
    turned = dict(reversed(value.items()))
    assert identity.canonical(value) == identity.canonical(turned)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1.0, "b": -0.0, "c": 1e21, "d": 1e-7}, '{"a":1,"b":0,"c":1e+21,"d":1e-7}'),
        ({"a": Colour.RED, Colour.RED: True}, '{"a":"red","red":true}'),
        ({"a": (1, (2,)), "b": {}}, '{"a":[1,[2]],"b":{}}'),
        ({"a": "\\u0000"}, '{"a":"\\\\u0000"}'),
        (MappingProxyType({"a": None}), '{"a":null}'),
        ({"a": SAFE_INTEGER_MAX, "b": -SAFE_INTEGER_MAX}, '{"a":9007199254740991,"b":-9007199254740991}'),
    ],
)
def test_equal_json_has_equal_bytes(value: Mapping[str, object], text: str) -> None:
    """One number has one spelling, and a subclass is its JSON value (spec P-06)."""
    assert identity.canonical(value) == text.encode()


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": 2**53}, "a"),
        ({"a": -(2**53)}, "a"),
        ({"a": 2**64}, "a"),
        ({"a": [0, {"b": 10**5000}]}, "a[1].b"),
        ({"a": float("nan")}, "a"),
        ({"a": [float("inf")]}, "a[0]"),
        ({"a": "\ud800"}, "a"),
        ({"é": "\ud800"}, "é"),
        ({"\ud800": 1}, '["\\ud800"]'),
        ({"a": "x\x00"}, "a"),
        ({"x\x00": 1}, '["x\\u0000"]'),
        ({"a": {1: 2}}, "a"),
        ({"a": {None: 2, "b": 1}}, "a"),
        ({"a": b"x"}, "a"),
        ({"a": {1, 2}}, "a"),
    ],
)
def test_what_has_no_one_encoding_is_refused_by_path(value: dict[str, object], field: str) -> None:
    """An identity object is refused by field, never rounded (spec P-06)."""
    with pytest.raises(Invalid) as caught:
        identity.canonical(value)
    assert caught.value.field == field
    with pytest.raises(Invalid) as caught:
        identity.digest("x", value)
    assert caught.value.field == field


def test_an_integer_too_large_is_refused_with_what_to_do() -> None:
    """The refusal says: write it as a string (spec P-06)."""
    with pytest.raises(Invalid, match="write it as a string") as caught:
        identity.request_digest({"priority": 2**53}, sha256(b""))
    assert caught.value.field == "given.priority"
    assert identity.request_digest({"priority": str(2**53)}, sha256(b""))


def test_depth_without_end_is_refused() -> None:
    """A cycle is no identity, and no crash (spec P-06)."""
    cycle: dict[str, Any] = {"s": 0.5}
    cycle["again"] = [cycle]
    with pytest.raises(Invalid) as caught:
        identity.canonical(cycle)
    assert caught.value.limit == "64 levels"
    deep: list[Any] = []
    for _ in range(62):
        deep = [deep]
    assert identity.canonical({"a": deep}) == rfc8785.dumps({"a": deep})
    with pytest.raises(Invalid):
        identity.canonical({"a": [deep]})


@pytest.mark.parametrize("name", ["v", "t"])
def test_the_encodings_own_members_cannot_be_given(name: str) -> None:
    """No caller can forge a version or a type (spec model.md, *Four identities*)."""
    with pytest.raises(Invalid) as caught:
        identity.digest("x", {name: 1})
    assert caught.value.field == name


def test_the_type_keeps_kinds_of_identity_apart() -> None:
    """Equal members under two types have two digests (spec model.md, *Four identities*)."""
    assert identity.digest("a", {"x": 1}) != identity.digest("b", {"x": 1})


def test_content_without_bytes_is_refused() -> None:
    """A lone surrogate has no UTF-8, so no digest."""
    with pytest.raises(Invalid) as caught:
        identity.content_digest("a\ud800")
    assert caught.value.field == "data"


PRODUCT: dict[str, Any] = {
    "stage": "pose",
    "inputs": [sha256(b"1"), sha256(b"2")],
    "model": sha256(b"m"),
    "config": sha256(b"c"),
    "schema": "3",
}
EFFECT: dict[str, Any] = {"mission": "m", "job": "j", "epoch": 1, "operation": "o", "parts": ["a", "b"]}
COMMAND: dict[str, Any] = {"actor": "a", "action": "b", "content": sha256(b"")}
ATTEMPT: dict[str, Any] = {"job": "j", "failures": 1}
REQUEST: dict[str, Any] = {"given": {"kind": "k", "key": "1"}, "payload": sha256(b"")}


@pytest.mark.parametrize(
    ("function", "parts", "changes"),
    [
        (
            identity.product_key,
            PRODUCT,
            {
                "stage": ["poses", ""],
                "inputs": [
                    [sha256(b"2"), sha256(b"1")],
                    [sha256(b"1")],
                    [],
                    [sha256(b"1"), sha256(b"2"), sha256(b"2")],
                    [sha256(b"1"), sha256(b"1")],
                ],
                "model": [sha256(b"c")],
                "config": [sha256(b"m")],
                "schema": ["4", "03", "3 "],
            },
        ),
        (
            identity.effect_key,
            EFFECT,
            {
                "mission": ["n", None, "None", ""],
                "job": ["k"],
                "epoch": [0, 2],
                "operation": ["p"],
                "parts": [["b", "a"], ["a"], [], ["ab"], ["a", "b", ""], ["a,b"]],
            },
        ),
        (identity.command_digest, COMMAND, {"actor": ["b"], "action": ["a"], "content": [sha256(b"1")]}),
        (identity.attempt_key, ATTEMPT, {"job": ["k"], "failures": [0, 2]}),
        (
            identity.request_digest,
            REQUEST,
            {
                "given": [
                    {},
                    {"kind": "k"},
                    {"kind": "1", "key": "k"},
                    {"kind": "k", "key": 1},
                    {"kind": "k", "key": None},
                ],
                "payload": [sha256(b"1")],
            },
        ),
    ],
    ids=["product", "effect", "command", "attempt", "request"],
)
def test_changing_any_part_changes_the_key(
    function: Callable[..., str], parts: dict[str, Any], changes: dict[str, list[Any]]
) -> None:
    """Every part is in the key, and so is the order of a list (spec A-09, B-04, B-15, B-20, D-01, P-28)."""
    assert changes.keys() == parts.keys()
    keys = [function(**parts)]
    keys += [function(**parts | {name: value}) for name, values in changes.items() for value in values]
    assert len(set(keys)) == len(keys)


@given(st.lists(digests, max_size=3), st.lists(digests, max_size=3))
def test_products_of_different_inputs_have_different_keys(first: list[str], second: list[str]) -> None:
    """Keys are equal exactly when the ordered inputs are (spec A-09)."""
    keys = [identity.product_key("s", inputs, sha256(b"m"), sha256(b"c"), "1") for inputs in (first, second)]
    assert (keys[0] == keys[1]) == (first == second)


@given(st.lists(fit_text, max_size=3), st.lists(fit_text, max_size=3))
def test_effects_of_different_parts_have_different_keys(first: list[str], second: list[str]) -> None:
    """No way of joining parts makes two effects one (spec P-28)."""
    keys = [identity.effect_key(None, "j", 1, "o", parts) for parts in (first, second)]
    assert (keys[0] == keys[1]) == (first == second)


def test_every_order_of_inputs_is_another_product() -> None:
    """The inputs are a list, not a set (spec A-09)."""
    inputs = [sha256(bytes([number])) for number in range(4)]
    keys = {identity.product_key("s", order, sha256(b"m"), sha256(b"c"), "1") for order in permutations(inputs)}
    assert len(keys) == 24


def test_a_list_may_be_any_sequence_but_not_one_text() -> None:
    """A tuple is a list; a bare text, a sequence of its letters, is a mistake."""
    inputs = PRODUCT["inputs"]
    assert identity.product_key(**PRODUCT) == identity.product_key(**PRODUCT | {"inputs": tuple(inputs)})
    assert identity.effect_key("m", "j", 1, "o", ("a",)) == identity.effect_key("m", "j", 1, "o", ["a"])
    with pytest.raises(Invalid) as caught:
        identity.product_key(**PRODUCT | {"inputs": inputs[0]})
    assert caught.value.field == "inputs"
    with pytest.raises(Invalid) as caught:
        identity.effect_key("m", "j", 1, "o", "ab")
    assert caught.value.field == "parts"


@pytest.mark.parametrize(
    "value", ["", "abc", "sha256:", "sha256:" + "0" * 63, "sha256:" + "0" * 65, "sha256:" + "G" * 64, None, 7]
)
@pytest.mark.parametrize("field", ["model", "config", "inputs[1]"])
def test_a_products_sources_are_named_by_digest(field: str, value: Any) -> None:
    """A name or a path may come to mean other bytes; a digest may not (spec A-08, A-09)."""
    changed = {"inputs": [sha256(b"1"), value]} if field == "inputs[1]" else {field: value}
    with pytest.raises(Invalid) as caught:
        identity.product_key(**PRODUCT | changed)
    assert caught.value.field == field
