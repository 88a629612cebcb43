"""A server looks below what it was started with, and runs what it was started with, whatever it is asked."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from testigo.errors import Invalid
from testigo.evidence.beneath import Place
from testigo.evidence.server.roots import Granted
from testigo.evidence.server.tree import copied
from testigo.evidence.streaming import Source
from testigo.evidence.transport.request import Request
from testigo.rules.evidence.coverage import Outcome
from tests.evidence.reports import result, run, sarif, written
from tests.evidence.server.serving import program, report, served


def refusal(granted: Granted, request: Request) -> Invalid:
    """What a request is refused with."""
    with pytest.raises(Invalid) as raised:
        granted.check(request)
    return raised.value


def test_what_is_not_below_a_root_is_refused_by_field(tmp_path: Path) -> None:
    """The tree, and the report that an option names."""
    outside = tmp_path / "outside"
    outside.mkdir()
    hidden = written(outside, sarif())
    program(tmp_path, report({}))
    with served(tmp_path, granted=Granted((tmp_path / "tree",))) as it:
        inside = written(it.tree, sarif())
        (it.tree / "link").symlink_to(outside)
        assert it.result("a.py").findings == 1
        assert it.result(analyser="sarif", file=str(inside)).outcome is Outcome.COMPLETE
        for request, field in (
            (Request("ruff", str(outside)), "root"),
            (Request("ruff", str(it.tree / "link")), "root"),
            (Request("ruff", str(it.tree / "..")), "root"),
            (Request("ruff", f"{it.tree}-another"), "root"),
            (Request("ruff", "/"), "root"),
            (it.request(analyser="sarif", file=str(hidden)), "options.file"),
            (it.request(analyser="sarif", file=str(it.tree / "link" / hidden.name)), "options.file"),
            (it.request(analyser="sarif", file="report.sarif"), "options.file"),
        ):
            with pytest.raises(Invalid) as raised:
                it.client.ask(request)
            assert (raised.value.field, raised.value.limit) == (field, f"below {it.tree}")
            assert "--root" in raised.value.remedy


def test_a_server_that_was_told_nothing_looks_nowhere_and_runs_nothing(tmp_path: Path) -> None:
    """Not even at the whole of the machine."""
    granted = Granted()
    refused = refusal(granted, Request("ruff", "/"))
    assert (refused.limit, "--root" in refused.remedy) == ("below no folder", True)
    assert refusal(granted, Request("ruff", str(tmp_path))).field == "root"
    there = Granted((tmp_path,))
    asked = Request("cyclonedx-py", str(tmp_path), options={"environment": str(tmp_path)})
    refused = refusal(there, asked)
    assert (refused.field, refused.limit) == ("options.environment", "one of: none")
    assert "--environment" in refused.remedy


def test_a_report_is_granted_alone(tmp_path: Path) -> None:
    """A scan grants the reports that it was given, and not what lies beside them."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "build").mkdir()
    given, other = (written(tmp_path / "build", sarif(), name) for name in ("given.sarif", "other.sarif"))
    with served(tmp_path, granted=Granted((tmp_path / "tree", given))) as it:
        assert it.result(analyser="sarif", file=str(given)).outcome is Outcome.COMPLETE
        for request in (
            it.request(analyser="sarif", file=str(other)),
            Request("ruff", str(given.parent)),
        ):
            with pytest.raises(Invalid):
                it.client.ask(request)


def test_a_request_brings_no_program(tmp_path: Path) -> None:
    """It names an environment that the server was started with; a path is no name, wherever it leads."""
    for name in ("trusted", "planted"):
        (tmp_path / name / "bin").mkdir(parents=True)
        python = tmp_path / name / "bin" / "python"
        python.write_text(f'#!/bin/sh\necho was run > {tmp_path / name / "ran"}\nexec {sys.executable} "$@"\n')
        python.chmod(stat.S_IRWXU)
    planted = tmp_path / "planted"
    granted = Granted((tmp_path,), {"shop": tmp_path / "trusted"})
    with served(tmp_path, granted=granted) as it:
        for asked in (str(planted), str(planted / "bin" / "python"), "../planted", "shop/../planted", "Shop", ""):
            with pytest.raises(Invalid) as raised:
                it.client.ask(it.request(analyser="cyclonedx-py", environment=asked))
            assert (raised.value.field, raised.value.limit) == ("options.environment", "one of: shop")
        assert it.result(analyser="cyclonedx-py", environment="shop").outcome is Outcome.COMPLETE
    assert (tmp_path / "trusted" / "ran").exists()
    assert not (planted / "ran").exists()


def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """What was below a root when it was asked is opened below it, name by name: the tree and the report."""
    for name in ("roots/tree/build", "outside/build"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / ".." / "a.py").write_text(name)
        written(tmp_path / name, sarif(run(result())))
    root = tmp_path / "roots"
    granted = Granted((root,))
    request = Request("sarif", str(root / "tree"), ("a.py",), {"file": str(root / "tree" / "build" / "report.sarif")})
    tree, given = granted.tree(request), granted.report(request)
    assert copied(tree, ("a.py",), tmp_path / "before", bytes_max=100) == {}
    assert given is not None
    with Source(given) as source:
        assert source.read()
    shutil.rmtree(root / "tree")
    (root / "tree").symlink_to(tmp_path / "outside")
    assert copied(tree, ("a.py",), tmp_path / "after", bytes_max=100).keys() == {"a.py"}
    assert list((tmp_path / "after").iterdir()) == []
    with pytest.raises(Exception, match=r"report\.sarif cannot be opened: (Not a directory|Too many levels)"):
        Source(given)


@pytest.mark.parametrize("swapped", ["a", "a/b", "a/b/c"])
def test_no_name_on_the_way_is_a_link(tmp_path: Path, swapped: str) -> None:
    """Neither the first nor the last, nor one that stands for what is opened alone."""
    (tmp_path / "base" / "a" / "b").mkdir(parents=True)
    (tmp_path / "base" / "a" / "b" / "c").write_text("inside")
    shutil.copytree(tmp_path / "base", tmp_path / "other")
    place = Place(tmp_path / "base", ("a",))
    with os.fdopen(place.opened("b", "c"), encoding="utf-8") as file:
        assert file.read() == "inside"
    at = tmp_path / "base" / swapped
    if at.is_dir():
        shutil.rmtree(at)
    else:
        at.unlink()
    at.symlink_to(tmp_path / "other" / swapped)
    for linked, names in ((place, ("b", "c")), (Place(at), ())):
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            linked.opened(*names)
