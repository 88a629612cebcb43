"""Reports that real tools wrote are read, or refused with a reason; each is listed with its outcome (issue 6)."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from testigo.errors import EvidenceInvalid
from testigo.evidence.sarif import read
from testigo.rules.evidence.sealing import Draft, sealed
from tests.evidence.reports import ROOT, drafts, refusal
from tests.machine import shared_data

pytestmark = pytest.mark.needs_shared_data

OUTSIDE = "it is outside the folder that was scanned"

READ = {
    "appendix_k.sarif": (1, None),
    "bash-report.sarif": (27, "/home/damien/dd"),
    "codeQL-output.sarif": (72, None),
    "dependency_check.sarif": (13, "/src"),
    "flawfinder.sarif": (53, None),
    "gitleaks_7.5.0.sarif": (8, None),
    "mobsfscan.json": (9, None),
    "njsscan.sarif": (2, "/src"),
    "no_runs.sarif": (0, None),
    "SuppressionTestCurrent.sarif": (4, "C:/code"),
}
"""Each file: how many results it has, and the folder that stands for the tree in it where its paths are absolute."""


def shared(name: str) -> Path:
    """The file of that name."""
    folder = shared_data()
    assert folder is not None
    return folder / "data" / "sarif" / name


def test_every_file_is_listed() -> None:
    """None is left out in silence."""
    assert {path.name for path in shared("").iterdir()} == READ.keys()


@pytest.mark.parametrize("name", READ)
def test_a_real_report_is_read_or_refused_with_a_reason(name: str) -> None:
    """Absolute paths are refused unless it is said which folder stands for the tree; all the rest is read."""
    count, prefix = READ[name]
    if prefix is not None:
        error = refusal(shared(name))
        assert OUTSIDE in error.message
        assert error.field == "/runs/0/results/0"
    roots = (ROOT, prefix) if prefix else (ROOT,)
    found = drafts(shared(name), roots=roots)
    assert len(found) == count
    findings = sealed(found)
    assert len({finding.fingerprint for finding in findings}) == len(findings)
    for finding in findings:
        finding.check()


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("seed", range(60))
def test_a_mutated_report_ends_in_results_or_in_our_error(tmp_path: Path, name: str, seed: int) -> None:
    """Bytes of real files changed, cut out, doubled: never another error, and what is read can be sealed."""
    chance = random.Random(f"{name} {seed}")
    data = bytearray(shared(name).read_bytes())
    for _ in range(chance.randint(1, 6)):
        mutate(data, chance)
    path = tmp_path / name
    path.write_bytes(data)
    with suppress(EvidenceInvalid):
        sealed(each for each in read(path, roots=(ROOT, "/")) if isinstance(each, Draft))


WORDS = [
    b"null",
    b"[]",
    b"{}",
    b"-1",
    b"1e999",
    b'""',
    b'"\\ud800"',
    b'"\\u0000"',
    b"true",
    b'"../../x"',
    b"99999999999999",
]


def mutate(data: bytearray, chance: random.Random) -> None:
    """One change: of a byte, a stretch, or a whole value."""
    at = chance.randrange(len(data) + 1)
    stretch = slice(at, at + chance.choice([1, 1, 7, 60]))
    match chance.randrange(5):
        case 0:
            data[stretch] = b""
        case 1:
            data[stretch] = data[stretch] * 2
        case 2:
            data[at : at + 1] = bytes([chance.randrange(256)])
        case 3:
            del data[at:]
        case 4:
            colon = data.find(b": ", at)
            end = min((e for e in (data.find(b",", colon), data.find(b"}", colon)) if e > 0), default=-1)
            if 0 < colon < end:
                data[colon + 2 : end] = chance.choice(WORDS)
