"""Take the pictures of the panel: `python -m docs.generate.screenshots`, from the root of the repository.

They are of the installation that the tests of the browser look at, with a day behind it. Chromium is needed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from testigo.access.roles import Role
from testigo.rules.states import State
from testigo.store.database import Database
from testigo.store.schema import migrate
from testigo.store.sql import Statement
from tests.browser.chromium import open_chromium
from tests.browser.conftest import QUICK, visiting
from tests.browser.installation import Installation, operations_at_rest, shop
from tests.services import create_database, embedded_bindir
from tests.shared_server import run_directory, shared_server_url
from tests.web.conftest import served
from tests.world import World

PICTURES = Path(__file__).resolve().parents[1] / "explanation" / "panel"

SCREEN = {"width": 1280, "height": 800}
TELEPHONE = {"width": 390, "height": 780}

# What was rolled up in the time before: two waves of work, and an hour in which payments were away.
_PAST = Statement(
    """
    WITH step AS (
        SELECT seconds, ago, 1 + 0.5 * sin((60 - ago) / 6.0) AS wave, ago BETWEEN 22 AND 27 AS away
        FROM unnest(ARRAY[60, 1440, 10080]) AS s(seconds), generate_series(1, 59) AS a(ago)
    ),
    share AS (
        SELECT 'all' AS scope, '' AS name, 1.0 AS part
        UNION ALL
        SELECT 'queue', q.name, q.part
        FROM (VALUES ('default', 0.6), ('mail', 0.2), ('payments', 0.15), ('reports', 0.05)) AS q(name, part)
    ),
    told AS (
        SELECT s.*, w.scope, w.name, m.measure, m.bucket, w.part * m.share * s.wave * 400 * s.seconds / 60 AS n
        FROM step s CROSS JOIN share w CROSS JOIN (
            VALUES ('requested', 0, 1.0), ('succeeded', 0, 0.98), ('retried', 0, 0.02), ('failed', 0, 0.003),
                   ('wait', 18, 0.3), ('wait', 20, 0.4), ('wait', 23, 0.25), ('wait', 26, 0.05),
                   ('run', 22, 0.4), ('run', 24, 0.4), ('run', 27, 0.15), ('run', 30, 0.05)
        ) AS m(measure, bucket, share)
    )
    INSERT INTO testigo.statistic AS kept (step_seconds, scope, at, name, measure, bucket, n)
    SELECT seconds, scope, to_timestamp((floor(extract(epoch FROM now()) / seconds) - ago) * seconds), name, measure,
           bucket, ceil(CASE WHEN away AND measure IN ('failed', 'retried') THEN n * 12 ELSE n END)
    FROM told
    UNION ALL
    SELECT seconds, scope, to_timestamp((floor(extract(epoch FROM now()) / seconds) - ago) * seconds), name, 'backlog',
           0, ceil(part * wave * (CASE WHEN away THEN 900 ELSE 60 END))
    FROM step CROSS JOIN share
    ON CONFLICT DO NOTHING
    """
)


# What is on the screen, without what is left empty at its bottom.
_TAKEN = "[innerWidth, Math.min(innerHeight, Math.ceil(document.querySelector('main').getBoundingClientRect().bottom))]"

# The workers of the installation are rows: somebody has to beat for them.
_BEAT = Statement("UPDATE testigo.session SET beat = beat + 1 WHERE state IN ('open', 'draining') RETURNING id")


def pictures(made: Installation) -> dict[str, str]:
    """What is pictured, by the name of the file."""
    failed, waiting = made.failed[0], made.jobs[State.INPUTS_PENDING]
    return {
        "overview": "",
        "jobs": "/jobs",
        "failed": "/failed",
        "why": f"/jobs/{failed}",
        "running": f"/jobs/{made.jobs[State.RUNNING]}",
        "lineage": f"/jobs/{waiting}#lineage",
        "confirm": "/operations/retry/confirm?q=queue:payments+after:7d",
        "operation": f"/operations/{made.operation}",
        "queues": "/queues",
        "queue": "/queues/show?name=payments",
        "kinds": "/kinds",
        "workers": "/workers",
        "worker": f"/workers/show?session={made.worker}",
        "events": "/events?stream=payments",
        "audit": "/audit?verify=0",
        "settings": "/settings",
    }


def main() -> None:
    """Take them all."""
    PICTURES.mkdir(exist_ok=True)
    with run_directory() as run:
        url = create_database(shared_server_url(run, "postgres18", embedded_bindir()), "pictured")
        migrate(url)
        with Database(url) as db:
            made = shop(World(db))
            made.world.query(_PAST)
            web = replace(QUICK, environment="production")
            with operations_at_rest(url), served(url, made.world, web) as site, open_chromium() as browser:
                secret = site.logged_in(str(Role.ADMIN))

                def take(name: str, path: str, **options: Any) -> None:
                    made.world.query(_BEAT)
                    with visiting(browser, site, **{"viewport": SCREEN, **options}) as somebody:
                        page = somebody.be(secret).open(f"/horizon{path}")
                        expect(page.locator("#live:not([data-state=live])")).to_have_count(0)
                        width, height = page.evaluate(_TAKEN)
                        page.set_viewport_size({"width": width, "height": height})
                        page.screenshot(path=PICTURES / f"{name}.png")

                for name, path in pictures(made).items():
                    take(name, path)
                take("overview-dark", "", color_scheme="dark")
                take("failed-es", "/failed", locale="es-ES")
                take("telephone", "/failed", viewport=TELEPHONE)


if __name__ == "__main__":
    main()
