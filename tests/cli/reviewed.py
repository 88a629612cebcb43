"""Commands over a project that was scanned twice and reviewed once, for tests that keep what commands answer."""

from __future__ import annotations

from testigo.evidence.analyses import begin_analysis
from testigo.evidence.exemptions import exempt
from testigo.evidence.model import Identity, NewArtifact
from testigo.evidence.review import advise
from testigo.rules.evidence.coverage import Coverage
from testigo.rules.evidence.review import Advice, Decision
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import asked, found, going, one, published, sealed
from tests.world import World

__all__ = ["commands"]

MESSAGE = "A password stands in the source, and whoever reads the source reads the password: keep it elsewhere."


def commands(world: World) -> list[list[str]]:
    """Each that looks, and each that decides, some of them twice."""
    before = published(
        world,
        found("gone", Severity.LOW),
        found(
            "kept",
            message=MESSAGE,
            snippet='password = "***"',
            rule_name="hardcoded-password",
            metadata={"cwe": "CWE-259"},
        ),
    )
    run = going(world, "ruff", "bandit")
    coverage = Coverage.of(map(str, range(10)), skipped={"1": "too large"}, failed={"2": "no Python"})
    artifact = NewArtifact("sbom.json", "application/vnd.cyclonedx+json", 2048, *map(content_digest, ("b", "r", "e")))
    run.publish(
        sealed(
            found("new", Severity.CRITICAL, rule="S102"),
            found("kept", message=MESSAGE, snippet='password = "***"', rule_name="hardcoded-password"),
            found("far/below/in/a/package/of/another", Severity.MEDIUM, line=None),
            artifacts=(artifact,),
        ),
        sealed(part=1, analyser="bandit", coverage=coverage, reasons=("1 file was no Python",)),
    )
    new, kept, far = (one(world, run.id, name).id for name in ("new", "kept", "far/below/in/a/package/of/another"))
    advice = Advice("a-model", Decision.FALSE_POSITIVE, "it is a test")
    world.db.run(advise, new, advice, action=world.action())
    identity = Identity("ruff", content_digest("new"))
    world.db.run(exempt, "shop", identity, reason="until the release", action=world.action())
    running = asked(project="other")
    world.db.run(begin_analysis, running, action=world.action())
    return [
        ["analyses", "list"],
        ["analyses", "list", "--project", "other"],
        ["analyses", "show", before],
        ["analyses", "show", "shop"],
        ["findings", "list", "shop"],
        ["findings", "list", "shop", "--severity", "info"],
        ["findings", "show", kept],
        ["findings", "show", new],
        ["findings", "history", new],
        ["findings", "decide", "false_positive", new],
        ["findings", "decide", "false_positive", new, "--reason", "a fixture"],
        ["findings", "decide", "open", new],
        ["findings", "decide", "accepted_risk", kept, far, new, "--reason", "agreed"],
        ["findings", "history", kept],
        ["findings", "exempt", kept, "--reason", "until the release", "--days", "30"],
        ["findings", "exempt", kept, "--reason", "until the next one"],
        ["findings", "unexempt", new, "--reason", "it is released"],
        ["findings", "unexempt", new],
        ["findings", "advise", kept, "--advisor", "a-model", "--suggests", "ignore", "--because", "it is a test"],
        ["findings", "advise", new, "--withdraw"],
        ["findings", "show", kept],
        ["findings", "delete", far, "--reason", "it names somebody", "--yes"],
        ["findings", "delete", far, "--reason", "it names somebody", "--revision", "2", "--yes"],
        ["gate", "show", "shop"],
        ["gate", "set", "shop", "--fail-on", "medium", "--new-only", "--baseline", before, "--note", "from now on"],
        ["gate", "set", "shop", "--fail-on", "high", "--revision", "0"],
        ["gate", "show", "shop"],
        ["gate", "show", "other"],
        ["artifacts", "list", "shop"],
        ["artifacts", "list", before],
        ["analyses", "cancel", running.id, "--note", "wrong branch"],
        ["analyses", "cancel", running.id, "--note", "wrong branch"],
        ["analyses", "cancel", run.id, "--note", "too late"],
    ]
