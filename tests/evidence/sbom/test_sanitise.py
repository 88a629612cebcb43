"""A bill of materials is valid, bounded, canonical and cleaned, or it is refused (spec D-15; field case R80)."""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from testigo.errors import EvidenceInvalid
from testigo.evidence.sbom import sanitise
from testigo.evidence.sbom.sanitise import Sbom, sanitised
from testigo.rules.identity import canonical
from tests.evidence.reports import written
from tests.machine import shared_data

ROOT = "/work/shop"


def bom(*components: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A document of those components."""
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": list(components), **members}


def component(name: str, **members: Any) -> dict[str, Any]:
    """A library that is its own reference."""
    return {"type": "library", "name": name, "bom-ref": name, **members}


def made(folder: Path, content: object) -> Sbom:
    """What becomes of the document."""
    return sanitised(written(folder, content, "sbom.json"), roots=(ROOT,))


def refused(folder: Path, content: object) -> EvidenceInvalid:
    """The error with which the document is refused."""
    with pytest.raises(EvidenceInvalid) as raised:
        made(folder, content)
    return raised.value


def test_the_same_document_gives_the_same_canonical_bytes(tmp_path: Path) -> None:
    """Spaces and the order of names do not show; the raw digest is that of the file."""
    document = bom(component("a", version="1"))
    first = made(tmp_path, json.dumps(document, indent=3).encode())
    second = made(tmp_path, json.dumps(dict(reversed(document.items()))).encode())
    assert first.body == second.body == canonical(document)
    assert first.raw_digest != second.raw_digest
    assert second.raw_digest == "sha256:" + hashlib.sha256((tmp_path / "sbom.json").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"{ROOT}/lib/a.py", "lib/a.py"),
        (ROOT, "local-path-removed"),
        ("file:///home/ann/a.whl", "file:///local-path-removed"),
        ("found in /home/ann/code/a.py today", "found in local-path-removed today"),
        ("C:\\Users\\ann\\code", "local-path-removed"),
        ("https://ann:pw@example.com/a", "https://example.com/a"),
        ("git+ssh://git@example.com/a.git", "git+ssh://git@example.com/a.git"),
        ("/usr/lib/python3/a.py", "/usr/lib/python3/a.py"),
        ("plain", "plain"),
    ],
)
def test_what_is_this_machines_own_is_taken_out(tmp_path: Path, said: str, kept: str) -> None:
    """Local paths and what stands before the host of a URL go; a path inside an image stays."""
    sbom = made(tmp_path, bom(component("a", description=said)))
    assert json.loads(sbom.body)["components"][0]["description"] == kept
    assert sbom.cleaned == (said != kept)


def test_no_secret_is_left(tmp_path: Path) -> None:
    """Texts, and properties whose name says that they are secret, are redacted (field case R76)."""
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    properties = [{"name": "db_password", "value": "hunter2hunter2"}]
    sbom = made(tmp_path, bom(component("a", description=f"key {secret}", properties=properties)))
    assert secret.encode() not in sbom.body
    assert b"hunter2" not in sbom.body


def test_references_still_meet_after_cleaning(tmp_path: Path) -> None:
    """The same text becomes the same everywhere; what names nothing is counted and not refused."""
    ref = "file:///home/ann/a.whl"
    dependencies = [{"ref": ref, "dependsOn": ["gone"]}]
    sbom = made(tmp_path, bom(component("a", **{"bom-ref": ref}), dependencies=dependencies))
    assert sbom.dangling == 1


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"specVersion": "1.6"}, "bomFormat"),
        ([], None),
        ({"bomFormat": "CycloneDX", "specVersion": "1.1"}, "specVersion"),
        ({"bomFormat": "CycloneDX", "specVersion": "9.9"}, "specVersion"),
        (bom({"type": "library"}), "/components/0"),
        (bom({"type": "nonsense", "name": "x"}), "/components/0/type"),
        (bom(component("x", unknown=1)), "/components/0"),
        (
            bom(component("x", externalReferences=[{"type": "vcs", "url": "not a url"}])),
            "/components/0/externalReferences",
        ),
        (bom(component("a"), component("b", **{"bom-ref": "a"})), "bom-ref"),
        (bom({"type": "library", "name": "x"}, {"type": "library", "name": "x"}), "/components/1"),
        (b'{"bomFormat": "CycloneDX", "bomFormat": "CycloneDX"}', "/bomFormat"),
        (b'{"bomFormat": "CycloneDX", ', None),
        (b'{"bomFormat": "CycloneDX", "a": ' + b"[" * 90 + b"]" * 90 + b"}", None),
        ('{"bomFormat": "CycloneDX"}'.encode("utf-16"), None),
        (bom(component("x", description=2**60)), None),
    ],
)
def test_what_is_not_as_it_must_be_is_refused(tmp_path: Path, content: object, field: str | None) -> None:
    """Another format, a broken schema, references and entries that are there twice, endless nesting."""
    error = refused(tmp_path, content)
    if field is not None:
        assert error.field is not None
        assert error.field.startswith(field)


def test_a_refusal_shows_nothing_of_the_document(tmp_path: Path) -> None:
    """The library's error quotes what stands there; ours names the place and the rule."""
    error = refused(tmp_path, bom({"type": "library", "name": "x", "password": "hunter2hunter2"}))
    assert "hunter2" not in str(error)


def test_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document has at most 64 MiB and two million values."""
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(sanitise.SBOM_BYTES_MAX + 1)
    with pytest.raises(EvidenceInvalid, match="too large"):
        sanitised(path)
    monkeypatch.setattr(sanitise, "VALUES_MAX", 10)
    assert refused(tmp_path, bom(*(component(str(at)) for at in range(10)))).limit == "10 values"


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in the report's place is refused (spec D-15)."""
    (tmp_path / "link.json").symlink_to(written(tmp_path, bom(), "sbom.json"))
    with pytest.raises(EvidenceInvalid):
        sanitised(tmp_path / "link.json")


def test_long_lists_and_many_references_are_checked_in_time_that_grows_with_them(tmp_path: Path) -> None:
    """Two thousand components with a URL each are checked one by one, not each against each."""
    url = {"type": "vcs", "url": "https://example.com/a/b/c?d=e#f"}
    many = [{"type": "library", "name": f"n{at}", "externalReferences": [url]} for at in range(2_000)]
    assert len(json.loads(made(tmp_path, bom(*many)).body)["components"]) == 2_000


SHARED = {
    "keycloak-10.0.2.cdx.json": (903, "1.2"),
    "laravel-7.12.0.cdx-1.2.json": (62, "1.2"),
    "laravel-7.12.0.cdx-1.4.json": (62, "1.4"),
    "proton-bridge-1.8.0.cdx.json": (201, "1.2"),
}
"""Each file: its components and its version. All of them are read."""


def shared(name: str) -> Path:
    """The file of that name."""
    folder = shared_data()
    assert folder is not None
    return folder / "data" / "sbom" / name


@pytest.mark.needs_shared_data
def test_every_file_is_listed() -> None:
    """None is left out in silence."""
    assert {path.name for path in shared("").iterdir()} == SHARED.keys()


@pytest.mark.needs_shared_data
@pytest.mark.parametrize("name", SHARED)
def test_a_real_bill_of_materials_is_read(name: str) -> None:
    """What real tools wrote is valid, and nothing of it is lost."""
    sbom = sanitised(shared(name))
    found, raw = json.loads(sbom.body), json.loads(shared(name).read_bytes())
    assert (len(found["components"]), sbom.version) == SHARED[name]
    assert found == raw
    assert (sbom.cleaned, sbom.dangling) == (0, 0)


@pytest.mark.needs_shared_data
@pytest.mark.parametrize("seed", range(40))
def test_a_mutated_bill_ends_in_an_artifact_or_in_our_error(tmp_path: Path, seed: int) -> None:
    """Bytes of a real file changed, cut out and doubled: never another error."""
    chance = random.Random(seed)
    data = bytearray(shared("laravel-7.12.0.cdx-1.4.json").read_bytes())
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        stretch = slice(at, at + chance.choice([1, 5, 40]))
        data[stretch] = chance.choice([b"", bytes(data[stretch]) * 2, b"null", b"7", b'"', b"[]", b"\\ud800"])
    with suppress(EvidenceInvalid):
        made(tmp_path, bytes(data))
