"""`testigo gate`: what a project lets through, and whether it passes (spec D-21; issue 6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Connection

from testigo.evidence import projects
from testigo.evidence.gates import set_gate
from testigo.evidence.model import ProjectView
from testigo.rules.evidence.coverage import Outcome
from testigo.rules.evidence.gate import DEFAULT
from testigo.rules.evidence.severity import Severity
from testigo.store.command import single_statement
from tests.cli.conftest import Cli
from tests.evidence.store.kit import found, going, published, sealed
from tests.world import World


def test_a_gate_is_shown_with_what_it_says(cli: Cli, world: World) -> None:
    """Of the newest published analysis, at this moment."""
    analysis = published(world, found("a"), found("b", Severity.LOW))
    told = cli("gate", "show", "shop").out
    assert "lets through  0 critical, 0 high" in told
    assert (
        "gate          failed\nbecause       1 high finding counts; none may pass\n"
        "counted       1 high, 1 low\n" in told
    )
    shown = cli("gate", "show", "shop", "--json").json
    assert (shown["analysis"], shown["revision"], shown["gate"]["verdict"]) == (analysis, 0, "failed")
    assert cli("gate", "show", "nothing").status == 13


def test_a_gate_tells_whom_its_newest_analysis_did_not_ask(cli: Cli, world: World) -> None:
    """It passes without them, and whoever asks is not left to believe that all is well (spec D-24)."""
    run = going(world, "ruff", "bandit")
    run.publish(sealed(found("a")), sealed(part=1, analyser="bandit"))
    assert "not asked" not in cli("gate", "show", "shop").out
    run = going(world)
    run.publish(sealed())
    assert "not asked     bandit" in cli("gate", "show", "shop").out
    assert cli("gate", "show", "shop", "--json").json["not_asked"] == ["bandit"]
    assert "not asked     bandit" in cli("analyses", "show", "shop").out


def test_the_exit_status_tells_what_a_gate_says(cli: Cli, world: World) -> None:
    """Only if that was asked for; a project without an analysis does not pass."""
    assert cli("gate", "set", "empty", "--fail-on", "high").status == 0
    assert (cli("gate", "show", "empty").status, cli("gate", "show", "empty", "--check").status) == (0, 13)
    published(world, found("a"))
    assert (cli("gate", "show", "shop").status, cli("gate", "show", "shop", "--check").status) == (0, 3)
    run = going(world)
    run.publish(sealed(outcome=Outcome.INCOMPLETE))
    assert cli("gate", "show", "shop", "--check").status == 4
    published(world)
    assert cli("gate", "show", "shop", "--check").status == 0


def test_a_gate_is_set_and_judges_at_once(cli: Cli, world: World) -> None:
    """By its options; what is not said stays out of the policy, and the baseline stays."""
    analysis = published(world, found("a"), found("b", Severity.LOW))
    ran = cli("gate", "set", "shop", "--fail-on", "critical", "--at-most", "low=0", "--baseline", analysis)
    assert ran.out.splitlines() == [
        "The gate of 'shop' is at revision 1 now.".replace("'", ""),
        f"The analysis {analysis}: failed.",
    ]
    answer = cli("gate", "set", "shop", "--at-most", "high=1", "--new-only", "--honour-suppressions", "--json").json
    assert answer == {
        "project": "shop",
        "policy": {"thresholds": {"high": 1}, "by_analyser": {}, "new_only": True, "honour_suppressions": True},
        "revision": 2,
        "baseline": analysis,
        "analysis": analysis,
        "verdict": "passed",
    }
    assert cli("gate", "set", "shop", "--fail-on", "low", "--baseline", "none", "--json").json["baseline"] is None
    told = cli("gate", "show", "shop").out
    assert "lets through  0 critical, 0 high, 0 medium, 0 low" in told


def test_a_gate_is_set_from_what_it_shows(cli: Cli, world: World, tmp_path: Path) -> None:
    """A whole policy, analysers of their own among it; only by who has seen it as it is."""
    policy = {"thresholds": {}, "by_analyser": {"ruff": {"high": 3}}, "new_only": False, "honour_suppressions": False}
    file = tmp_path / "gate.json"
    file.write_text(json.dumps(policy))
    published(world, found("a"))
    assert cli("gate", "set", "shop", "--policy", str(file), "--note", "agreed", "--json").json["verdict"] == "passed"
    assert cli("gate", "show", "shop", "--json").json["policy"] == policy
    told = cli("gate", "show", "shop").out
    assert "lets through  everything\n              ruff: 3 high" in told
    assert "why           agreed" in told
    ran = cli("gate", "set", "shop", "--fail-on", "high", "--revision", "0", "--json")
    assert (ran.status, ran.error["facts"]["revision"]) == (12, 1)
    assert [tuple(row) for row in world.query("SELECT what, objects, reason FROM testigo.audit ORDER BY n")] == [
        ("gate.set", ["project:shop"], "agreed")
    ]


def test_of_two_who_set_one_revision_one_wins(cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looked at an earlier one is refused: the baseline that it would keep is not that of this (spec D-17)."""
    mine = published(world)
    assert cli("gate", "set", "shop", "--fail-on", "low").status == 0
    look = projects.project

    @single_statement
    def looked(c: Connection, name: str) -> ProjectView:
        seen = look(c, name)
        monkeypatch.setattr(projects, "project", look)
        world.db.run(set_gate, "shop", DEFAULT, expected_revision=1, baseline=mine, action=world.action())
        return seen

    monkeypatch.setattr(projects, "project", looked)
    ran = cli("gate", "set", "shop", "--fail-on", "critical", "--revision", "2", "--json")
    assert (ran.status, ran.error["facts"]["revision"]) == (12, 1)
    assert world.db.run(look, "shop").baseline == mine
    assert cli("gate", "set", "shop", "--fail-on", "critical", "--revision", "2", "--json").json["baseline"] == mine


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 2),
        (["--new-only"], 2),
        (["--at-most", "high"], 2),
        (["--at-most", "worst=1"], 2),
        (["--at-most", "high=-1"], 2),
        (["--at-most", "high=99999999999"], 11),
        (["--policy", "/nonexistent"], 2),
        (["--policy", "/dev/null"], 2),
        (["--policy", "x", "--fail-on", "high"], 2),
        (["--fail-on", "worst"], 2),
        (["--fail-on", "high", "--baseline", "0198f3c2-0000-7000-8000-000000000001"], 13),
    ],
)
def test_what_cannot_be_a_gate_is_refused(cli: Cli, world: World, options: list[str], status: int) -> None:
    """And nothing is set."""
    published(world)
    assert cli("gate", "set", "shop", *options).status == status
    assert cli("gate", "show", "shop", "--json").json["revision"] == 0
