"""What is published can be installed, on every Python that it promises, and is whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from tests.shared_server import shared_folder

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHON = "Programming Language :: Python :: "
SUPPORTED = [name.removeprefix(PYTHON) for name in PROJECT["classifiers"] if name.startswith(f"{PYTHON}3.")]


def interpreter(version: str) -> Path | None:
    """A Python of this version on this machine, by its own name or among those of pyenv; None where there is none."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    named = shutil.which(f"python{version}")
    places = [*kept.glob(f"{version}.*/bin/python"), *([Path(named)] if named and "shims" not in named else [])]
    return next(iter(places), None)


IMPORT_ALL = """
import importlib, json, pkgutil, testigo
ELSEWHERE = {"testigo.store.migrations.env", "testigo.testing.fixtures"}  # run inside Alembic, inside pytest
lacks = {}
for module in pkgutil.walk_packages(testigo.__path__, "testigo.", onerror=lambda name: None):
    if module.name not in ELSEWHERE:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            lacks[module.name] = error.name.partition(".")[0]
print(json.dumps(lacks))
"""
LACKS = {
    "contrib.django": {"django"},
    "contrib.fastapi": {"fastapi"},
    "demo.scan": {"ijson"},
    "evidence.analysers": {"ijson"},
    "evidence.sarif": {"ijson"},
    "evidence.sbom": {"cryptography", "cyclonedx", "ijson"},
    "evidence.server": {"ijson"},
    "evidence.streaming": {"ijson"},
    "evidence.transport.artifacts": {"cryptography"},
    "evidence.transport.pulling": {"cryptography"},
    "scan.plan": {"ijson"},
    "scan.publishing": {"cryptography"},
    "web": {"fastapi", "h11", "httpx", "starlette", "uvicorn"},
}
"""What each part of testigo lacks where nothing but the wheel and its dependencies is; all else can be imported."""
NEEDS = {
    ("scan", "."): "evidence",
    ("demo",): "evidence",
    ("analyser", "--root", "."): "evidence",
    ("serve",): "web",
    ("demo", "engine"): "embedded",
}
"""The extra that each command asks for there."""

pytestmark = pytest.mark.needs_package_index


@pytest.fixture(scope="session")
def built(run_folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of this tree, made once for the whole run."""
    made = shared_folder(run_folder, "dist", lambda directory: uv("build", "--quiet", "--out-dir", directory, ROOT))
    (wheel,), (sdist,) = made.glob("*.whl"), made.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.parametrize("python", SUPPORTED)
def test_every_extra_resolves_on_every_supported_python(python: str) -> None:
    """`testigo[all]` resolves to wheels alone on each Python that the classifiers name."""
    uv(
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


def test_the_wheel_and_the_sdist_are_whole(built: tuple[Path, Path]) -> None:
    """Every file of the package is in the wheel, which is built from the sdist, and both carry the licence."""
    wheel, sdist = built
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


def test_the_wheel_works_with_nothing_but_its_dependencies(tmp_path: Path, built: tuple[Path, Path]) -> None:
    """In a clean environment without extras or tools a module lacks at most what an extra brings, and a command that
    needs it says which."""
    wheel, _ = built
    python = clean_environment(tmp_path, Path(sys.executable))
    uv("pip", "install", "--quiet", "--python", python, wheel)
    assert lacking(answer(tmp_path, python, "-I", "-c", IMPORT_ALL)) == LACKS
    for command, extra in NEEDS.items():
        ran = ask(tmp_path, python.with_name("testigo"), *command)
        assert ran.returncode, command
        assert f"pip install 'testigo[{extra}]'" in ran.stderr, command
        assert "Traceback" not in ran.stderr, command


def lacking(told: dict[str, str]) -> dict[str, set[str]]:
    """What each part of testigo lacks, by what each module does; a module of no part stands for itself."""
    found: dict[str, set[str]] = {}
    for module, package in told.items():
        name = module.removeprefix("testigo.")
        part = next((part for part in LACKS if f"{name}.".startswith(f"{part}.")), name)
        found.setdefault(part, set()).add(package)
    return found


@pytest.mark.parametrize("python", [version for version in SUPPORTED if interpreter(version)])
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_on_every_python_that_is_here(
    tmp_path: Path, built: tuple[Path, Path], python: str, kind: str
) -> None:
    """By pip, with all extras: there it answers, and its demos lose nothing."""
    found = interpreter(python)
    assert found
    wheel, sdist = built
    installed = clean_environment(tmp_path, found)
    uv("pip", "install", "--quiet", "--python", installed, f"{wheel if kind == 'wheel' else sdist}[all]")
    testigo = installed.with_name("testigo")
    assert answer(tmp_path, testigo, "version", "--json")["python"].startswith(f"{python}.")
    assert answer(tmp_path, testigo, "demo", "--jobs", "10", "--json")["proof"]["transactions"] == 1
    assert answer(tmp_path, testigo, "demo", "engine", "--jobs", "40", "--json")["succeeded"] == 40


def test_it_is_a_tool_of_its_own(tmp_path: Path, built: tuple[Path, Path]) -> None:
    """As pipx and `uv tool` install it: an environment apart, and one program on the path."""
    wheel, _ = built
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    uv("tool", "install", "--quiet", "--python", sys.executable, f"testigo[all] @ {wheel.as_uri()}", **places)
    assert [each.name for each in (tmp_path / "bin").iterdir()] == ["testigo"]
    assert answer(tmp_path, tmp_path / "bin" / "testigo", "demo", "engine", "--jobs", "40", "--json")["lost"] == 0


def clean_environment(directory: Path, interpreter: Path) -> Path:
    """The Python of a new environment that has nothing."""
    uv("venv", "--quiet", "--python", interpreter, directory / "clean")
    return directory / "clean" / "bin" / "python"


def answer(directory: Path, program: Path, *arguments: str) -> Any:
    """What a program answers in JSON, where nothing of this project is in sight."""
    ran = ask(directory, program, *arguments)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def ask(directory: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program that has run, where nothing of this project is in sight."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TESTIGO_"))}
    return subprocess.run([program, *arguments], cwd=directory, env=clean, check=False, capture_output=True, text=True)


def uv(*arguments: str | Path, **environment: str) -> None:
    """Run uv; what it says goes into the test's output."""
    subprocess.run([find_uv_bin(), *arguments], check=True, cwd=ROOT, env={**os.environ, **environment})
