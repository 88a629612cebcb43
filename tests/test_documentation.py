"""What the pages name is there, and what is there is named: commands, options, findings, metrics, graces."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate.commands import commands
from testigo.settings import WORKER
from testigo.worker.metrics import Metrics

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")])
HOW_TO = ROOT / "docs" / "how-to"
COMMANDS = dict(commands())
ROOT_OPTIONS = {"--help", "--json", "--version", "--install-completion", "…"}
STOP_SECONDS = WORKER.drain_seconds + 2 * WORKER.kill_grace_seconds + 5
"""What a supervisor has to wait for at the least: the drain, two graces, and the last answers."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_shows_exists_with_its_options(page: Path) -> None:
    """In consoles, in examples and within sentences."""
    for words in _commands_shown(page.read_text("utf-8")):
        _check(words)


def test_every_finding_of_the_doctor_is_explained() -> None:
    """The table has each code that the doctor may tell, and no other."""
    source = "".join(file.read_text("utf-8") for file in (ROOT / "src/testigo/cli/doctor").glob("*.py"))
    codes = set(re.findall(r'"([A-Z]+_[A-Z_]+|UNREACHABLE|UNCHECKED|UNSERVED|POOLER)"', source))
    page = (HOW_TO / "monitoring.md").read_text("utf-8")
    told = set(re.findall(r"`([A-Z_]{6,})`", page)) - {"SCHEMA_MISMATCH"}  # an error's own code
    assert told == codes - {"SCHEMA_MISMATCH"}


def test_every_metric_is_explained() -> None:
    """The table has each metric of a worker by the name under which it is served, and no other."""
    metrics = Metrics()
    metrics.watch(in_flight=float, beat_age_seconds=float, hears=float)
    served = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in metrics.registry.collect()
    }
    page = (HOW_TO / "monitoring.md").read_text("utf-8")
    assert set(re.findall(r"\btestigo_[a-z_]+", page)) == served


def test_every_supervisor_waits_for_as_long_as_a_worker_may_need() -> None:
    """Under systemd, in Docker and in Kubernetes; the guide tells the sum."""
    containers = (HOW_TO / "containers.md").read_text("utf-8")
    compose, deployment, _ = (yaml.safe_load(block) for block in _blocks("yaml", containers))
    assert int(compose["services"]["worker"]["stop_grace_period"].removesuffix("s")) > STOP_SECONDS
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > STOP_SECONDS
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read_string(_blocks("ini", (HOW_TO / "systemd.md").read_text("utf-8"))[0])
    assert unit.getint("Service", "TimeoutStopSec") > STOP_SECONDS
    assert f"{STOP_SECONDS:g} with the defaults" in (HOW_TO / "workers.md").read_text("utf-8")


def test_every_file_that_the_promises_name_is_there_and_every_attack_is_named() -> None:
    """The code that keeps a promise, the tests that attack it, and no test of a guarantee is left out."""
    text = (ROOT / "GUARANTEES.md").read_text("utf-8")
    named = re.findall(r"`([a-z_/*0-9]+\.py)`", text)
    lost = [name for name in named if not [*ROOT.glob(f"tests/{name}"), *ROOT.glob(f"src/testigo/{name}")]]
    attacks = {f"guarantees/{file.name}" for file in (ROOT / "tests/guarantees").glob("test_*.py")}
    assert (lost, sorted(attacks - set(named))) == ([], [])


def _commands_shown(text: str) -> Iterator[list[str]]:
    """The words of each call of `testigo` in a page, after the program's name."""
    for line in re.findall(r"^(?:\$ |ExecStart=\S*/)(?:python manage.py )?testigo ([a-z-].*)$", text, re.MULTILINE):
        yield shlex.split(re.split(r"\s[|<>&#]|\\$", line)[0])
    for listed in re.findall(r"(?:command: |CMD )\[\"?testigo\"?, (.*)\]", text):
        yield [word.strip(' "') for word in listed.split(",")]
    for words in re.findall(r"`testigo ([a-z-][^`]*)`", text):
        yield words.split()


def _check(words: list[str]) -> None:
    path = "testigo"
    rest = list(words)
    while rest and any(each == f"{path} {rest[0]}" or each.startswith(f"{path} {rest[0]} ") for each in COMMANDS):
        path = f"{path} {rest.pop(0)}"
    options = {word.partition("=")[0] for word in rest if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)}
    if path not in COMMANDS:  # a noun alone, or the program itself
        assert path != "testigo" or set(words) <= ROOT_OPTIONS, f"there is no testigo {' '.join(words)}"
        return
    known = {name for param in COMMANDS[path].params for name in _names(param)}
    assert options <= known | {"--help"}, f"{path} has no {options - known}"


def _names(param: Any) -> tuple[str, ...]:
    return (*param.opts, *param.secondary_opts)


def _blocks(language: str, text: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found
