"""A run from its request to its acknowledgement, with real analysers (spec D-05, D-09, D-12, D-13)."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from testigo.errors import ArtifactInvalid, Busy, Conflict, CursorInvalid, NotFound, StoragePressure
from testigo.evidence.sbom.attest import Signer
from testigo.evidence.transport.client import AnalyserClient, RunState
from testigo.rules.evidence.coverage import Outcome
from testigo.rules.identity import content_digest
from testigo.store.keys import Keyring
from tests.evidence.server.serving import MIB, TOKEN, Served, program, report, served
from tests.worker.kit import await_that

WAITS = "while not os.path.exists(os.environ['HOME'] + '/go'): time.sleep(0.01)\n"
"""It never goes: nobody but the run itself knows its home."""


def test_real_analysers_and_their_results(tmp_path: Path) -> None:
    """Sealed, pulled, checked, and said to be ours: findings, an artifact and what was not looked at."""
    files = {"a.py": "assert x\n", "b/broken.py": "def (\n", "requirements.txt": "ijson==3.4.0\n"}
    with served(tmp_path, files=files) as it:
        ruff = it.result("a.py", "b/broken.py", analyser="ruff")
        assert ruff.outcome is Outcome.INCOMPLETE
        assert [each.path for each in ruff.coverage.failed] == ["b/broken.py"]
        (page,) = it.pulled(ruff).pages()
        assert {(each.path, each.line, each.rule) for each in page} >= {("a.py", 1, "S101")}
        sbom = it.result("requirements.txt", analyser="cyclonedx-py")
        assert (sbom.outcome, sbom.findings, len(sbom.artifacts)) == (Outcome.COMPLETE, 0, 1)
        pulled = it.pulled(sbom)
        key = Signer.of(Keyring.open(tmp_path / "keys")).public_key
        pulled.check_artifacts(key)
        assert list(pulled.pages()) == []
        pulled.artifact(sbom.artifacts[0]).unlink()
        with pytest.raises(ArtifactInvalid):
            pulled.check_artifacts(key)


def test_nothing_raw_is_kept(tmp_path: Path) -> None:
    """What programs wrote, and the copy of the files, are gone before the result is there (spec D-15)."""
    program(tmp_path, report({}) + "open(os.environ['HOME'] + '/left', 'w').write('raw')\n")
    with served(tmp_path) as it:
        run = it.result("a.py").run
        assert set(it.held()) == {"mark", f"{run}/findings/lines", f"{run}/order", f"{run}/sealed"}
        folder = it.server.runs.spool.folder
        modes = {path.stat().st_mode & 0o077 for path in (folder.parent, folder, *folder.rglob("*"))}
        assert modes == {0}, "others can read it"


def test_the_provenance_says_how_it_was_run(tmp_path: Path) -> None:
    """By which program of which release, and where; not in which folders, and not on which files (spec D-06)."""
    program(tmp_path, report({}))
    with served(tmp_path) as it:
        manifest = it.result("a.py")
        told = dict(manifest.provenance)
        assert manifest.analyser_version == "1.0"
        assert told["command"].startswith("semgrep scan --json --config=semgrep_rules.yml ")
        assert told.keys() == {"command", "files", "host", "network", "python", "spool", "testigo"}
        assert "/" not in told["command"]
        assert "a.py" not in told["command"]


def test_the_same_request_answers_the_same_run(tmp_path: Path) -> None:
    """While it runs and while its result is kept; afterwards it is run again."""
    program(tmp_path, report({}))
    with served(tmp_path) as it:
        first = it.result("a.py")
        assert it.client.ask(it.request("a.py")).run == first.run
        assert it.client.ask(it.request()).run != first.run
        it.client.acknowledge(first)
        again = it.result("a.py")
        assert again.run != first.run
        assert again.result == first.result


def test_only_exactly_what_was_published_is_acknowledged(tmp_path: Path) -> None:
    """Run, request and result; then it is deleted, and nobody knows it any more (spec D-09)."""
    program(tmp_path, report({}))
    with served(tmp_path) as it:
        manifest = it.result("a.py")
        other = content_digest("other")
        for wrong in (replace(manifest, request=other), replace(manifest, result=other)):
            with pytest.raises(Conflict):
                it.client.acknowledge(wrong)
        assert it.client.look(manifest.run).manifest == manifest
        it.client.acknowledge(manifest)
        assert it.held() == ["mark"]
        assert manifest.cursor is not None
        with pytest.raises(NotFound):
            it.client.acknowledge(manifest)
        with pytest.raises(NotFound):
            it.client.page(manifest.run, manifest.cursor)
        with pytest.raises(NotFound):
            it.client.look(manifest.run)


def test_a_cursor_serves_no_other_result(tmp_path: Path) -> None:
    """Of another run it is refused, though both results are there and equal (spec D-13)."""
    program(tmp_path, report({}))
    with served(tmp_path) as it:
        one, other = it.result("a.py"), it.result("a.py", more="1")
        assert one.result == other.result
        assert one.cursor is not None
        assert it.client.page(one.run, one.cursor) == it.client.page(one.run, one.cursor)
        with pytest.raises(CursorInvalid):
            it.client.page(other.run, one.cursor)


def test_many_pages_are_the_findings_in_their_order(tmp_path: Path) -> None:
    """None twice, none left out."""
    program(tmp_path, report(*({"message": f"m{n}", "rule": f"r{n:04d}"} for n in range(2500))))
    with served(tmp_path) as it:
        manifest = it.result("a.py")
        assert (manifest.findings, manifest.pages) == (2500, 3)
        found = [each for page in it.pulled(manifest).pages() for each in page]
        assert [each.rule for each in found] == [f"r{n:04d}" for n in range(2500)]


def test_no_room_refuses_work_and_evicts_nothing(tmp_path: Path) -> None:
    """What nobody acknowledged stays; when it is acknowledged there is room again (spec D-12)."""
    program(tmp_path, report({}))
    with served(tmp_path, capacity_bytes=40 * MIB) as it:
        kept = [it.result("a.py", n="1"), it.result("a.py", n="2")]
        program(tmp_path, WAITS)
        running = it.client.ask(it.request("a.py", n="3"))
        with pytest.raises(StoragePressure):
            it.client.ask(it.request("a.py", n="4"))
        assert it.client.ask(it.request("a.py", n="1")).manifest == kept[0], "what is there is told for all that"
        assert [it.client.look(each.run).manifest for each in kept] == kept
        it.client.cancel(running.run)
        it.client.ask(it.request("a.py", n="4"))


def test_a_result_that_nobody_acknowledges_goes_in_time(tmp_path: Path) -> None:
    """The time limit holds for all (spec D-12)."""
    program(tmp_path, report({}))
    with served(tmp_path, keep_seconds=0.05) as it:
        it.client.ask(it.request("a.py"))
        await_that(lambda: it.held() == ["mark"], "the end of the result")


def test_cancelling_ends_what_runs_and_what_waits(tmp_path: Path) -> None:
    """At once, with everything that it had (spec D-20)."""
    program(tmp_path, WAITS)
    with served(tmp_path, at_once=1) as it:
        running = it.client.ask(it.request("a.py"))
        await_that(lambda: it.client.look(running.run).state is RunState.RUNNING)
        waiting = it.client.ask(it.request("a.py", n="2"))
        assert it.client.look(waiting.run).state is RunState.WAITING
        it.client.cancel(waiting.run)
        it.client.cancel(running.run)
        with pytest.raises(NotFound):
            it.client.look(running.run)
        await_that(lambda: it.held() == ["mark"], "the end of all files")
        program(tmp_path, report({}))
        assert it.result("a.py").outcome is Outcome.COMPLETE


def test_who_waits_is_told_of_the_end(tmp_path: Path) -> None:
    """Also when the run is cancelled meanwhile."""
    program(tmp_path, WAITS)
    with served(tmp_path) as it:
        run = it.client.ask(it.request("a.py")).run
        ended: list[type[BaseException]] = []
        waiter = threading.Thread(target=_wait, args=(it, run, ended))
        waiter.start()
        it.client.cancel(run)
        waiter.join()
        assert ended == [NotFound]


def _wait(it: Served, run: str, ended: list[type[BaseException]]) -> None:
    with AnalyserClient(it.server.address, TOKEN) as client:
        try:
            client.look(run, wait_seconds=30)
        except NotFound as error:
            ended.append(type(error))


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    """An analyser, a run, a page, an artifact."""
    program(tmp_path, report({}))
    with served(tmp_path) as it:
        with pytest.raises(NotFound):
            it.client.ask(it.request("a.py", analyser="nobody"))
        manifest = it.result("a.py")
        with pytest.raises(NotFound), (tmp_path / "x").open("wb") as file:
            it.client.fetch(manifest.run, content_digest("x"), file)
        with pytest.raises(NotFound):
            it.client.look("0190b5a2-0000-7000-8000-000000000001")
        assert it.client.analysers()["semgrep"] == "1.0"
        assert set(it.client.analysers()) >= {"ruff", "bandit", "detect-secrets", "sarif", "cyclonedx"}


def test_a_run_for_which_there_is_no_thread_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, takes nothing of the spool, and may be asked for again."""

    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    program(tmp_path, report({}))
    with served(tmp_path, capacity_bytes=32 * MIB) as it:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none)
            with pytest.raises(Busy, match="no thread"):
                it.server.runs.ask(it.request("a.py"))
        assert it.held() == ["mark"]
        assert it.result("a.py").findings == 1
