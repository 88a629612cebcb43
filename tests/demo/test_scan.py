"""The demo of a scan: its publisher dies with everything inserted, and one analysis is there in the end, whole."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest

from testigo.demo.scan import copied
from tests.cli.process import piped
from tests.worker.kit import await_that

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
PATIENCE_SECONDS = 240.0


@pytest.mark.needs_linux
def test_it_survives_its_publisher(tmp_path: Path) -> None:
    """Nothing is left of what was inserted, and nothing of the demo itself (spec D-10, D-11)."""
    source, scratch = _source(tmp_path)
    ran = piped("demo", "--path", str(source), "--json", url=NOWHERE, TMPDIR=str(scratch))
    out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    assert (ran.returncode, err) == (0, ""), out + err
    told = json.loads(out)
    assert (told["state"], told["killed"], told["left"]) == ("complete", True, 0)
    assert told["proof"]["rows"] == told["findings"] > 0
    assert told["proof"]["transactions"] == 1
    assert told["proof"]["lost"] >= 1
    assert (told["project"], told["database"]) == ("shop", None)
    assert list(scratch.iterdir()) == []


def test_a_demo_that_stays_opens_the_panel_on_what_was_found(tmp_path: Path) -> None:
    """It says where its database is, which is there until Ctrl-C; the link logs in, and there are the analysis and jobs
    that failed."""
    source, scratch = _source(tmp_path)
    ran = piped("demo", "--path", str(source), "--stay", "--json", url=NOWHERE, TMPDIR=str(scratch))
    assert ran.stdout is not None
    try:
        told, opened = json.loads(ran.stdout.readline()), json.loads(ran.stdout.readline())
        assert told["database"].startswith(f"the embedded server in {scratch}")
        url = opened["panel"].removesuffix("/horizon")
        with httpx.Client(base_url=url, headers={"Origin": url}, timeout=PATIENCE_SECONDS) as client:
            link = httpx.URL(opened["login_link"]).params["link"]
            await_that(lambda: _logs_in(client, link), "an answer of the panel")
            shown = client.get(f"/horizon/analyses/{told['analysis']}")
            assert (shown.status_code, "shop" in shown.text) == (200, True)
            failed = client.get("/api/v1/jobs", params={"state": "permanent_failure"}).json()["items"]
            assert [each["kind"] for each in failed] == ["demo.look"] * 3
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    finally:
        ran.kill()
        ran.communicate()
    assert ran.returncode == 0, out + err
    assert list(scratch.iterdir()) == []


def _source(folder: Path) -> tuple[Path, Path]:
    """A tree in which something is found, and a folder for what the demo leaves meanwhile."""
    source, scratch = folder / "shop", folder / "scratch"
    source.mkdir()
    scratch.mkdir()
    (source / "shop.py").write_text('import os\nos.system("ls")\n', "utf-8")
    return source, scratch


def _logs_in(client: httpx.Client, link: str) -> bool:
    try:
        return client.post("/horizon/login", data={"link": link}).status_code == 303
    except httpx.TransportError:
        return False


def test_files_are_copied_with_their_names(tmp_path: Path) -> None:
    """Those of the library below it, others by their own."""
    (tmp_path / "a.py").write_text("x = 1\n", "utf-8")
    tree = copied([Path(json.__file__), tmp_path / "a.py"], tmp_path / "tree")
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*.py")) == ["a.py", "json/__init__.py"]
