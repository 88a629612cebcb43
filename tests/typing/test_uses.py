"""Both type checkers agree, line by line, on what users may write."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.typing.checkers import mypy, pyright

USES = Path(__file__).with_name("uses.py")
README = Path(__file__).parent.parent.parent / "README.md"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mypy's cache, for it reads our dependencies but once."""
    return tmp_path_factory.mktemp("mypy")


@pytest.fixture(params=["the uses", "the README"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file as a user has it: outside our tree, with the installed testigo."""
    written = tmp_path / "written.py"
    if request.param == "the uses":
        shutil.copy(USES, written)
    else:
        written.write_text(re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)[0])
    return written


def test_mypy_accepts_and_refuses_what_we_say(file: Path, cache: Path) -> None:
    """Strict: every use that is to be refused is, with the code that stands there, and no other."""
    assert mypy(file, cache) == ""


@pytest.mark.needs_node
def test_pyright_accepts_and_refuses_what_we_say(file: Path) -> None:
    """Strict: it agrees on each of these lines."""
    assert pyright(file) == ""


def test_a_wrong_use_is_seen(tmp_path: Path, cache: Path) -> None:
    """The checker does look: a comment that nothing needs is an error."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from testigo import App\n\napp = App('x')  # type: ignore[arg-type]\n")
    assert "unused-ignore" in mypy(wrong, cache)


@pytest.mark.needs_node
def test_a_wrong_use_is_seen_by_pyright_as_well(tmp_path: Path) -> None:
    """It looks as well."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from testigo import App\n\napp = App('x')  # type: ignore[arg-type]\n")
    assert "reportUnnecessaryTypeIgnoreComment" in pyright(wrong)
