"""Lines of a tree's files, without the secrets of which they show a part."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.evidence.analysers.sources import Sources
from tests.evidence.analysers.running import tree

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
BODY = "MIIEowIBAAKCAQEAx7Jv0yq4n2T1Zp9sKQ3rWc8hLbVfYdEuGmXoAiRtNz5CjPwe"
KEY = ["-----BEGIN RSA PRIVATE KEY-----", *[BODY] * 30, "-----END RSA PRIVATE KEY-----"]


@pytest.mark.parametrize(
    "text",
    [
        f'k = (\n    "{TOKEN[:18]}"\n    "{TOKEN[18:]}"\n)\n',
        f"k = '{TOKEN[:14]}' + \\\n    '{TOKEN[14:]}'\n",
        "\n".join(["pem = '''", *KEY, "'''", ""]),
        "\n".join(["x = 1", "pem = (", *(f'    "{line}\\n"' for line in KEY), ")", ""]),
    ],
    ids=["joined", "continued", "key", "key of strings"],
)
def test_no_line_shows_its_part_of_a_secret_that_goes_on(tmp_path: Path, text: str) -> None:
    """Of whichever line a finding is: the lines around it tell what it is a part of (spec D-14)."""
    sources = Sources(tree(tmp_path, {"a.py": text}))
    for line in range(1, text.count("\n") + 1):
        shown = sources.lines("a.py", line) or ""
        assert not any(part in shown for part in (TOKEN[:14], TOKEN[18:], BODY[:20])), (line, shown)


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    """What was taken out before them, and how lines end, moves none."""
    text = "\n".join([*KEY, "first = 1\r\nsecond = 2", f"k = '{TOKEN}'", "third = 3\fx", ""])
    sources = Sources(tree(tmp_path, {"a.py": text}))
    at = len(KEY) + 1
    assert sources.lines("a.py", at, at + 1) == "first = 1\nsecond = 2"
    assert sources.lines("a.py", at + 2) == "k = '[redacted:github-token]'"
    assert sources.lines("a.py", at + 3) == "third = 3\fx"
    assert sources.lines("a.py", at + 9) is None
