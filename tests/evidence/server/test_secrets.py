"""No secret that an analyser sees leaves the server: not in a finding, its file names, reasons, provenance or bytes.

In every field, split over lines and pages, encoded, in what a program says before it dies (spec D-14; field case R76).
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.server.serving import Served, program, report, served

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ENCODED = base64.b64encode(f"token={SECRET}".encode()).decode()
SPLIT = f'"{SECRET[:20]}" +\n    "{SECRET[20:]}"'
SOURCE = f'password = "{SECRET}"\nkey = {SPLIT}\n'


def _everything(it: Served) -> bytes:
    """Every byte that lies in the spool or is handed out of it."""
    kept = b"".join(path.read_bytes() for path in it.server.runs.spool.folder.rglob("*") if path.is_file())
    pulled = b"".join(path.read_bytes() for path in it.folder.glob("pulled-*/*"))
    return kept + pulled


def _halves(text: bytes) -> bool:
    """Whether the secret, or most of it, stands in the text."""
    return any(part.encode() in text for part in (SECRET, SECRET[:20], SECRET[20:], ENCODED, ENCODED[8:40]))


FIELDS: dict[str, dict[str, Any]] = {
    "message": {"message": f"Found {SECRET} here"},
    "message, split": {"message": f"Found {SPLIT} here"},
    "message, encoded": {"message": f"Found {ENCODED} here"},
    "rule": {"rule": f"rule-{SECRET}"},
    "metadata": {"metadata": {"token": SECRET}},
    "metadata, its name": {"metadata": {SECRET: "x"}},
    "metadata, encoded": {"metadata": {"note": ENCODED}},
    "snippet": {"line": 1},
    "snippet, split": {"line": 2, "last": 3},
}


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_a_finding_tells_it(tmp_path: Path, field: str) -> None:
    """It is redacted before anything is sealed."""
    program(tmp_path, report(FIELDS[field]))
    with served(tmp_path, files={"a.py": SOURCE}) as it:
        manifest = it.result("a.py")
        assert manifest.findings == 1
        (page,) = it.pulled(manifest).pages()
        assert not _halves(_everything(it)), page


def test_a_secret_in_a_thousand_findings_is_on_no_page(tmp_path: Path) -> None:
    """Half of it in the last finding of a page and half in the first of the next is two findings, each without it."""
    results = [{"rule": f"r{n:04d}", "message": f"key {n}: {SECRET}"} for n in range(1200)]
    results[999]["message"] = f'token = "{SECRET[:20]}" \\'
    results[1000]["message"] = f'token = "{SECRET[20:]}"'
    program(tmp_path, report(*results))
    with served(tmp_path, files={"a.py": "x\n"}) as it:
        manifest = it.result("a.py")
        assert (manifest.findings, manifest.pages) == (1200, 2)
        assert len(list(it.pulled(manifest).pages())) == 2
        assert not _halves(_everything(it))


@pytest.mark.parametrize(
    "source",
    [
        f"raise SystemExit({SECRET!r})\n",
        f"print({SECRET!r}); print({SECRET!r}, file=sys.stderr)\n",
        f'print(\'{{"results": [{{"{SECRET}": 1}}]}}\')\n',
        report({"path": f"/elsewhere/{SECRET}"}),
    ],
    ids=["dies of it", "says it", "reports it as a name", "names a file outside with it"],
)
def test_a_failure_does_not_tell_it(tmp_path: Path, source: str) -> None:
    """Nor what the program wrote, which is gone."""
    program(tmp_path, source)
    with served(tmp_path) as it:
        manifest = it.result("a.py")
        assert manifest.reasons
        assert not _halves(str(manifest.to_json()).encode() + _everything(it))
