"""Whatever byte of a result is changed, it is refused by name, or it says the same: never a crash, never a part of it.

Manifest and pages are changed as a broken disk, a cut connection or a liar would (field cases R80, R45).
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import ManifestInvalid, PageInvalid
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.pages import checked
from testigo.rules.identity import canonical
from tests.evidence.transport.results import Result

RESULT = Result.of(2, 3, 1)
MANIFEST = canonical(RESULT.manifest.to_json())
BODIES = RESULT.written()
FINDINGS = [each.to_json() for page in checked(RESULT.manifest, BODIES) for each in page]

MUTATIONS = st.tuples(st.integers(0, 2**20), st.integers(0, 3), st.binary(max_size=3))
"""Where, how many bytes go, and which come in their place."""


def _mutated(body: bytes, mutations: list[tuple[int, int, bytes]]) -> bytes:
    for at, gone, new in mutations:
        at %= len(body) + 1
        body = body[:at] + new + body[at + gone :]
    return body


def _read(manifest: Manifest, bodies: list[bytes]) -> list[object] | None:
    """What is read; None where it is refused, by page and check."""
    try:
        return [each.to_json() for page in checked(manifest, bodies) for each in page]
    except (PageInvalid, ManifestInvalid) as error:
        return None if error.facts["check"] and error.field else ["refused, and nobody is told why"]


@given(page=st.integers(0, 2), mutations=st.lists(MUTATIONS, min_size=1, max_size=3))
def test_a_page_with_other_bytes_is_refused(page: int, mutations: list[tuple[int, int, bytes]]) -> None:
    """Its form is canonical, and its findings are hashed: no other bytes say the same."""
    bodies = list(BODIES)
    bodies[page] = _mutated(bodies[page], mutations)
    assert _read(RESULT.manifest, bodies) == (FINDINGS if bodies == BODIES else None)


@given(order=st.lists(st.integers(0, 2), max_size=5))
def test_pages_in_any_other_order_are_refused(order: list[int]) -> None:
    """Left out, sent twice, exchanged."""
    expected = FINDINGS if order == [0, 1, 2] else None
    assert _read(RESULT.manifest, [BODIES[n] for n in order]) == expected


@given(mutations=st.lists(MUTATIONS, min_size=1, max_size=3))
def test_a_manifest_with_other_bytes_is_refused_or_says_what_it_says(mutations: list[tuple[int, int, bytes]]) -> None:
    """Read, it is in its one form; with pages that it does not fit it is refused."""
    body = _mutated(MANIFEST, mutations)
    try:
        manifest = Manifest.from_bytes(body)
    except ManifestInvalid:
        return
    assert canonical(manifest.to_json()) == body
    bound = ("run", "request", "analyser", "result", "findings", "bytes", "pages", "summary", "cursor")
    same = all(getattr(manifest, name) == getattr(RESULT.manifest, name) for name in bound)
    assert _read(manifest, BODIES) == (FINDINGS if same else None)


@given(data=st.data())
def test_findings_of_another_result_never_pass(data: st.DataObject) -> None:
    """A page whose every sum agrees with itself, and not with the manifest, is refused at the latest in the end."""
    liar = Result.of(2, 3, 1)
    page = data.draw(st.integers(0, 2))
    at = data.draw(st.integers(0, len(liar.pages[page]["findings"]) - 1))
    liar.change(page, at, message=data.draw(st.text("abc", min_size=1)))
    for n, each in enumerate(liar.pages):
        each.update(result=RESULT.manifest.result, cursor=RESULT.pages[n]["cursor"], next=RESULT.pages[n]["next"])
    assert _read(replace(RESULT.manifest), liar.written()) is None
