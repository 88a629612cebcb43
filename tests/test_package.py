"""What is published can be installed, on every Python that it promises, and is whole."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHON = "Programming Language :: Python :: "
SUPPORTED = [name.removeprefix(PYTHON) for name in PROJECT["classifiers"] if name.startswith(f"{PYTHON}3.")]

IMPORT_ALL = """
import importlib, pkgutil, testigo
for module in pkgutil.walk_packages(testigo.__path__, "testigo."):
    if module.name != "testigo.store.migrations.env":  # runs inside Alembic, and nowhere else
        importlib.import_module(module.name)
"""

pytestmark = pytest.mark.needs_package_index


@pytest.mark.parametrize("python", SUPPORTED)
def test_every_extra_resolves_on_every_supported_python(python: str) -> None:
    """`testigo[all]` resolves to wheels alone on each Python that the classifiers name."""
    run(
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--python-version",
        python,
        "--only-binary",
        ":all:",
        "--extra",
        "all",
        "pyproject.toml",
    )


def test_the_wheel_and_the_sdist_are_whole(tmp_path: Path) -> None:
    """Every file of the package is in the wheel, which is built from the sdist, and both carry the licence."""
    wheel, sdist = build(tmp_path)
    sources = {
        file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src/testigo").rglob("*") if file.is_file()
    }
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    assert {file for file in sources if "__pycache__" not in file} - in_wheel == set()
    assert any(name.endswith("licenses/LICENSE") for name in in_wheel)
    with tarfile.open(sdist) as tarball:
        in_sdist = {name.partition("/")[2] for name in tarball.getnames()}
    assert {"LICENSE", "README.md", "Makefile", "tests/conftest.py"} <= in_sdist


def test_the_wheel_works_with_nothing_but_its_dependencies(tmp_path: Path) -> None:
    """In a clean environment without extras or tools, every module of the wheel can be imported."""
    wheel, _ = build(tmp_path)
    python = tmp_path / "clean" / "bin" / "python"
    run("venv", "--quiet", "--python", sys.executable, tmp_path / "clean")
    run("pip", "install", "--quiet", "--python", python, wheel)
    subprocess.run([python, "-I", "-c", IMPORT_ALL], check=True, cwd=tmp_path)


def build(directory: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of this tree, made in `directory`."""
    run("build", "--quiet", "--out-dir", directory, ROOT)
    (wheel,), (sdist,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
    return wheel, sdist


def run(*arguments: str | Path) -> None:
    """Run uv; what it says goes into the test's output."""
    subprocess.run([find_uv_bin(), *arguments], check=True, cwd=ROOT)
