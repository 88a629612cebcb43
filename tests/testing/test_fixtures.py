"""Our pytest fixtures, loaded as a user loads them; on an embedded server `tests/test_guides.py` shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg

CONFTEST = """
import pytest

pytest_plugins = ["testigo.testing.fixtures"]

@pytest.fixture(scope="session")
def testigo_server() -> str:
    return {url!r}
"""

TESTS = """
import pytest
from testigo import App, Context, State

app = App("shop", "postgresql://nobody@127.0.0.1:1/production")

@app.job("work")
def work(ctx: Context, n: int) -> int:
    return n

@pytest.mark.parametrize("n", [1, 2])
def test_the_same_key_in_each_test(testigo, n):
    testigo.use(app)
    job = work.options(key="the same").submit(n=n)
    assert app.run_until_idle() == 1
    assert job.result(timeout=0) == n
    assert testigo.database is not app.database

def test_without_the_fixture_the_app_is_where_it_was():
    with pytest.raises(Exception, match="AUTHORITY_UNAVAILABLE"):
        work.submit(n=3)
"""


def test_each_test_has_an_installation_of_its_own(database_url: str, tmp_path: Path) -> None:
    """Also on a server of the user's; what the App was made with is not touched, and nothing is left behind."""
    (tmp_path / "conftest.py").write_text(CONFTEST.format(url=database_url))
    (tmp_path / "test_work.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TESTIGO_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-q", "-W", "error", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    with psycopg.connect(database_url) as connection:
        left = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'test%'").fetchall()
    assert left == [("testigo",)]
