"""The files that the demo looks at are always the same ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testigo.demo.files import python_files, standard_library
from testigo.errors import Invalid


def test_the_standard_library_is_a_fixed_set() -> None:
    """About 400 files of it, and of fewer the most different ones."""
    files = standard_library(400)
    assert len(set(files)) == 400
    assert files == standard_library(400)
    assert all(file.suffix == ".py" and "site-packages" not in file.parts for file in files)
    assert set(standard_library(40)) <= set(standard_library(10_000))


def test_a_folder_s_files_are_found(tmp_path: Path) -> None:
    """Without what is hidden, and without names that no payload could hold."""
    for name in ("b.py", "a/c.py", "a/d.txt", ".venv/e.py", "a/__pycache__/f.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.py")).touch()
    assert python_files(tmp_path, 400) == [tmp_path / "a" / "c.py", tmp_path / "b.py"]
    assert python_files(tmp_path, 1) == [tmp_path / "a" / "c.py"]
    assert python_files(tmp_path / "b.py", 400) == [tmp_path / "b.py"]


def test_a_folder_without_any_is_refused(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(Invalid, match="no Python file"):
        python_files(tmp_path, 400)
