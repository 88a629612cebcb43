"""What is translated shows the same code, and says as much."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README", "docs/tutorial/first-job")
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_a_translation_shows_the_code_of_its_original(page: str) -> None:
    """Every block of code is the same, byte for byte, and each section has its counterpart."""
    original, translated = _read(f"{page}.md"), _read(f"{page}.es.md")
    assert BLOCK.findall(translated) == BLOCK.findall(original)
    assert _outline(translated) == _outline(original)


@pytest.mark.parametrize("page", PAGES)
def test_a_translation_leads_to_the_same_places(page: str) -> None:
    """Links go where the original's go, but for those from one language to the other."""
    assert _links(f"{page}.es.md") == _links(f"{page}.md")


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _outline(text: str) -> list[str]:
    """What each line outside of code begins with: headings, points, rows of tables."""
    return [line.split()[0] for line in BLOCK.sub("", text).splitlines() if re.match(r"#+ |- |\|", line)]


def _links(name: str) -> list[str]:
    found = re.findall(r"\]\(([^)]+)\)", BLOCK.sub("", _read(name)))
    return sorted(each.replace(".es.md", ".md") for each in found if "README" not in each)
