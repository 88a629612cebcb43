"""A runner tells what it loaded, or why it could not, and loads no more than it needs (P-20)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.worker.scripted_keeper import ScriptedKeeper


@pytest.mark.parametrize(
    ("handlers", "named", "told"),
    [
        ("raise RuntimeError('not today')", "handlers:app", "RuntimeError: not today"),
        ("raise SystemExit(0)", "handlers:app", "SystemExit: 0"),
        ("import nowhere_to_be_found", "handlers:app", "nowhere_to_be_found"),
        ("def broken(:", "handlers:app", "SyntaxError"),
        ("", "handlers:other", "other"),
        ("", "handlers:App", "not an App"),
        ("", "handlers", "module:name"),
        ("@app.job('a')\ndef a(ctx: Context, n: 'Missing') -> None: ...", "handlers:app", "Missing"),
    ],
)
def test_an_application_that_cannot_be_loaded_is_told_of(tmp_path: Any, handlers: str, named: str, told: str) -> None:
    """The reason arrives, and the process ends with status 3."""
    with ScriptedKeeper(tmp_path, handlers, named=named) as keeper:
        _, message = keeper.hear("broken")
        assert message.startswith(f"{named} cannot be loaded.")
        assert told in message
        assert keeper.exit_status() == 3


def test_a_deployment_is_told_by_its_name(tmp_path: Any) -> None:
    """One that no event could tell is told of before any work is."""
    with ScriptedKeeper(tmp_path, "", TESTIGO_DEPLOYMENT="v1.2.3") as keeper:
        assert keeper.hear("hello")[1]["deployment"] == "v1.2.3"
    with ScriptedKeeper(tmp_path, "", TESTIGO_DEPLOYMENT="v1\n") as keeper:
        assert "TESTIGO_DEPLOYMENT" in keeper.hear("broken")[1]


def test_a_runner_loads_no_driver_of_a_database(tmp_path: Any) -> None:
    """It starts fast and stays small."""
    loaded = """
    import sys

    @app.job("loaded")
    async def loaded(ctx: AsyncContext) -> list[str]:
        return sorted({name.partition(".")[0] for name in sys.modules})
    """
    with ScriptedKeeper(tmp_path, loaded) as keeper:
        _, output = keeper.end_of(keeper.run("loaded"))
        assert not {"sqlalchemy", "psycopg", "alembic", "asyncpg", "opentelemetry", "prometheus_client"} & {
            *json.loads(output)
        }


def test_a_worker_starts_its_runners_before_it_loads_what_takes_long() -> None:
    """Until then it has nothing of the database's: a restart loads both sides at once (issue *Limits*)."""
    program = """
import sys
import testigo.worker.program
from testigo.worker.runners import Runners

def tend(self, now):
    print(*({"sqlalchemy", "psycopg", "prometheus_client", "pydantic"} & set(sys.modules)), "tended")
    raise SystemExit

Runners.tend = tend
testigo.worker.program.main(["nowhere:app"])
"""
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["tended"]
