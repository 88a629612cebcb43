"""`testigo analyses`: what there is, what came of it, and how it is ended (spec D-20, D-21)."""

from __future__ import annotations

from testigo.evidence.publication import publish
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.severity import Severity
from tests.cli.conftest import Cli
from tests.evidence.store.kit import found, going, published, sealed
from tests.world import World


def test_analyses_are_listed_the_newest_first(cli: Cli, world: World) -> None:
    """All, or those of a project; the state and what the gate says are told apart."""
    assert "There is no analysis." in cli("analyses", "list").err
    first = published(world, found("a"))
    other = published(world, project="other")
    assert [each["id"] for each in cli("analyses", "list", "--json").json["analyses"]] == [other, first]
    head, row = cli("analyses", "list", "--project", "shop").out.splitlines()
    assert head.split() == ["ID", "PROJECT", "N", "STATE", "GATE", "FINDINGS", "BEGAN", "ANALYSERS"]
    assert row.split()[:6] == [first, "shop", "1", "complete", "failed", "1"]
    page = cli("analyses", "list", "--limit", "1", "--json").json
    assert [each["id"] for each in cli("analyses", "list", "--after", page["next"], "--json").json["analyses"]] == [
        first
    ]


def test_an_analysis_is_shown_with_its_coverage_and_its_gate(cli: Cli, world: World) -> None:
    """What was not looked at is no silence (spec D-24)."""
    coverage = Coverage.of(map(str, range(10)), skipped={}, failed=dict.fromkeys("123", "no Python"))
    run = going(world, "ruff", "bandit")
    run.publish(
        sealed(found("a"), found("b", Severity.LOW)),
        sealed(part=1, analyser="bandit", coverage=coverage, outcome=Outcome.INCOMPLETE),
    )
    ran = cli("analyses", "show", run.id)
    assert ran.err == ""
    told = ran.out
    assert "state         incomplete" in told
    assert "findings      1 high, 1 low" in told
    assert "bandit could not analyse 3 of 10 files" in told
    assert "7 of 10" in told
    shown = cli("analyses", "show", "shop", "--json").json
    assert (shown["analysis"]["id"], shown["gate"]["verdict"], len(shown["parts"])) == (run.id, "incomplete", 2)


def test_what_is_not_in_scope_is_shown(cli: Cli, world: World) -> None:
    """To whoever did not scan it as well (spec D-24)."""
    run = going(world, left_out={"link": 2, "repository": 1})
    assert "left out      2 link, 1 repository" in cli("analyses", "show", run.id).out
    assert cli("analyses", "show", run.id, "--json").json["analysis"]["left_out"] == {"link": 2, "repository": 1}


def test_why_something_was_not_looked_at_is_shown_however_narrow_the_terminal_is(cli: Cli, world: World) -> None:
    """In words, and once where parts of one analyser say the same (spec D-24)."""
    run = going(world, "ruff", "bandit", "bandit", "bandit")
    same, other = "not analysed: BUSY: The analyser server at unix:/a does not answer.", "its job was cancelled"
    missing = {1: same, 2: other, 3: same}
    world.db.run(publish, run.id, [sealed(found("a"))], missing=missing, owner=run.owner, action=world.action())
    told = cli("analyses", "show", run.id).out.splitlines()
    assert told[-3:] == ["", f"bandit, 2 parts: {same}", f"bandit: {other}"]


def test_an_analysis_is_cancelled_with_its_jobs(cli: Cli, world: World) -> None:
    """One that had ended before stays as it is, and so does evidence that is published (spec D-20)."""
    run = going(world)
    assert cli("analyses", "cancel", run.id).status == 2, "a reason is needed"
    answer = cli("analyses", "cancel", run.id, "--note", "wrong branch", "--json").json
    assert answer == {"analysis": run.id, "state": "cancelled", "ended": True}
    assert "nothing changed" in cli("analyses", "cancel", run.id, "--note", "again").out
    assert "wrong branch" in cli("analyses", "show", run.id).out
    assert cli("jobs", "show", run.new.publish.id, "--json").json["job"]["state"] == "cancelling"
    ran = cli("analyses", "cancel", published(world, found("a")), "--note", "too late")
    assert (ran.status, ran.err.split(":")[0]) == (12, "STATE_CONFLICT")
    assert [tuple(row) for row in world.query("SELECT what, reason, result FROM testigo.audit ORDER BY n")] == [
        ("analyses.cancel", "wrong branch", "done"),
        ("analyses.cancel", "again", "done"),
    ]
