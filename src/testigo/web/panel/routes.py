"""All routes of the panel."""

from __future__ import annotations

from testigo.access.roles import Right
from testigo.web.panel import (
    actions,
    analyses,
    artifacts,
    audit,
    deciding,
    events,
    exempting,
    failed,
    files,
    findings,
    gates,
    job,
    jobs,
    kinds,
    login,
    operations,
    projects,
    queues,
    reprocessing,
    settings,
    workers,
)
from testigo.web.panel.overview import overview
from testigo.web.routes import Routes

__all__ = ["routes"]

routes = Routes("/horizon", in_schema=False)
routes.get("", Right.READ)(overview)
routes.include(files.routes, login.routes)
routes.include(jobs.routes, job.routes, actions.routes, operations.routes, failed.routes)
routes.include(events.routes, audit.routes)
routes.include(findings.routes, deciding.routes, exempting.routes, analyses.routes, artifacts.routes)
routes.include(reprocessing.routes)
routes.include(gates.routes, projects.routes)
routes.include(queues.routes, kinds.routes, workers.routes, settings.routes)
