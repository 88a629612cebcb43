"""Evidence to look at: analyses that are published, go on and lack something, with findings of every kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from testigo.authority.actions import Action
from testigo.evidence.exemptions import exempt
from testigo.evidence.model import Identity
from testigo.evidence.review import advise, decide
from testigo.rules.evidence.coverage import Coverage, Outcome, Uncovered
from testigo.rules.evidence.review import Advice, Decision
from tests.evidence.store.kit import found, going, listed, sealed
from tests.web.conftest import Site
from tests.web.panel.dossier import dossier, several

__all__ = ["evidence"]

WIDE = "x" * 120


def evidence(site: Site) -> list[str]:
    """Pages with something on them: decided, exempt and advised upon, incomplete, over several analyses."""
    for count in (4, 9):
        dossier(site, *several(count))
    wide = found("z", message=f"{WIDE} {WIDE}", path=f"src/{WIDE}/{WIDE}.py", rule=WIDE, snippet=f"{WIDE * 3}\n")
    made = dossier(site, *several(12), wide)
    run = going(site.world, "ruff", "bandit", project=WIDE)
    left = Coverage(10, 0, 1, (), (Uncovered(f"src/{WIDE}.py", "it is not UTF-8"),))
    run.publish(sealed(found("a"), coverage=left), sealed(part=1, analyser="bandit", outcome=Outcome.FAILED))
    running = going(site.world, project="running")
    site.db.run(advise, (one := listed(site.world, made)["f0"]).id, Advice("a-model", Decision.IGNORE, "a test"),
                action=Action("token:a-model"))  # fmt: skip
    site.db.run(decide, one.id, Decision.FIXED, expected_revision=1, reason="it is gone", action=Action("user:ana"))
    until = datetime.now(UTC) + timedelta(days=30)
    who = Identity("ruff", one.finding.fingerprint)
    site.db.run(exempt, "shop", who, reason="until then", expires_at=until, action=Action("user:ana"))
    (hostile,) = [view for view in listed(site.world, made).values() if view.finding.rule == WIDE]
    return [
        "/analyses",
        f"/analyses/{made}",
        f"/analyses/{run.id}",
        f"/analyses/{running.id}/cancel",
        f"/analyses/{made}/reprocess",
        f"/analyses/{made}/findings?decision=open&path=src/",
        f"/analyses/{made}/decide?id={hostile.id}.1&to=accepted_risk",
        f"/findings/{one.id}",
        f"/findings/{hostile.id}",
        f"/findings/{hostile.id}/exempt",
        f"/findings/{one.id}/unexempt",
        f"/findings/{one.id}/delete",
        "/projects",
        "/projects/show?name=shop",
        "/projects/gate?name=shop",
    ]
