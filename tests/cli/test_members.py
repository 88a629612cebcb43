"""What programs read in answers keeps its names: members may be added, and none goes or is renamed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testigo.authority.report import LogLine, Progress, report
from testigo.cli.written import moment
from testigo.rules.outcomes import Block, Fail
from tests.cli import reviewed
from tests.cli.conftest import Cli
from tests.world import World, held

GOLDEN = Path(__file__).with_name("members.txt")
"""A line per command: every member of its answer by its path, `[]` for each of several."""
EVIDENCE = GOLDEN.with_name("members-evidence.txt")


def test_the_members_of_every_answer_keep_their_names(cli: Cli, world: World) -> None:
    """Each command is run on an installation in which everything has happened (issue *The first hour*)."""
    at = world.query("SELECT now() AS now")[0].now
    worker, (running, failed) = world.worker("w"), [*world.submit(), *world.submit()]
    first, second = worker.claim(2, starts=True).leases
    assert (first.job_id, second.job_id) == (running, failed)
    lines = [LogLine(held(first), 2, at, "info", "line")]
    world.db.run(report, worker.id, [Progress(held(first), 1, at, 1.0, 2.0, "note")], lines)
    worker.settle((second, Fail("CODE", "message", "detail", permanent=True)))
    (blocked,) = world.submit()
    worker.settle((worker.take(), Block("approval")))
    (waiting,) = world.submit(key="k", tags=("t",))
    commands = [
        ["jobs", "list", "--limit", "1"],
        ["jobs", "show", running, "--documents"],
        ["jobs", "show", failed, "--events"],
        ["jobs", "explain", waiting],
        ["jobs", "submit", "other", "--run-at", moment(at)],
        ["jobs", "wait", failed],
        ["jobs", "log", running],
        ["jobs", "cancel", waiting],
        ["jobs", "retry", failed],
        ["jobs", "prune", "--yes"],
        ["queues", "pause", "q", "--note", "why"],
        ["queues", "list"],
        ["queues", "show", "q"],
        ["queues", "resume", "q"],
        ["kinds", "pause", "work", "--note", "why"],
        ["kinds", "list"],
        ["workers", "list"],
        ["workers", "drain", "w", "--yes"],
        ["events", "list"],
        ["events", "list", "q", "--limit", "1"],
        ["migrate", "--check"],
        ["migrate", "--sql"],
        ["config", "show"],
        ["version"],
        ["jobs", "unblock", blocked],
    ]
    _keep(GOLDEN, [_line(words, _answer(cli, *words)) for words in commands])


def test_the_members_of_every_answer_about_evidence_keep_their_names(cli: Cli, world: World) -> None:
    """The same of a project that was scanned and reviewed: what is refused has no answer."""
    ran = [(words, cli(*words, "--json")) for words in reviewed.commands(world)]
    _keep(EVIDENCE, [_line(words, each.json) for words, each in ran if each.out])


def _keep(file: Path, told: list[str]) -> None:
    for known, now in zip(file.read_text("utf-8").splitlines(), told, strict=True):
        assert set(known.split()) <= set(now.split()), f"what was {known!r} is {now!r}"


def _answer(cli: Cli, *words: str) -> Any:
    ran = cli(*words, "--json")
    (answer,) = ran.lines
    return answer


def _line(words: list[str], answer: Any) -> str:
    named = " ".join(word for word in words if not word[0].isdigit())
    return f"{named}: {' '.join(dict.fromkeys(_members(answer, '')))}"


def _members(value: Any, path: str) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _members(inner, f"{path}.{name}" if path else name)
        case [first, *_]:
            yield from _members(first, f"{path}[]")
        case _:
            yield path
