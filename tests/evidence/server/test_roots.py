"""A server that was given folders looks below these alone, whatever it is asked and whatever links lead to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testigo.errors import Invalid
from testigo.evidence.server.roots import place_of
from testigo.evidence.server.tree import copied
from testigo.evidence.transport.request import Request
from tests.evidence.reports import sarif, written
from tests.evidence.server.serving import program, report, served


def test_what_is_not_below_a_root_is_refused_by_field(tmp_path: Path) -> None:
    """The tree, the report that an option names, and an environment, whose Python could read anything."""
    outside = tmp_path / "outside"
    outside.mkdir()
    hidden = written(outside, sarif())
    program(tmp_path, report({}))
    with served(tmp_path, roots=(tmp_path / "tree",)) as it:
        inside = written(it.tree, sarif())
        (it.tree / "link").symlink_to(outside)
        assert it.result("a.py").findings == 1
        assert str(it.result(analyser="sarif", file=str(inside)).outcome) == "complete"
        for request, field in (
            (Request("ruff", str(outside)), "root"),
            (Request("ruff", str(it.tree / "link")), "root"),
            (Request("ruff", str(it.tree / "..")), "root"),
            (Request("ruff", f"{it.tree}-another"), "root"),
            (Request("ruff", "/"), "root"),
            (it.request(analyser="sarif", file=str(hidden)), "options.file"),
            (it.request(analyser="sarif", file=str(it.tree / "link" / hidden.name)), "options.file"),
            (it.request(analyser="cyclonedx-py", environment=str(it.tree)), "options.environment"),
        ):
            with pytest.raises(Invalid) as raised:
                it.client.ask(request)
            assert raised.value.field == field


def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """What was below a root when it was asked is opened below it, link by link."""
    for name in ("roots/tree", "outside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").write_text(name)
    root = tmp_path / "roots"
    tree = place_of(Request("ruff", str(root / "tree"), ("a.py",)), (root,))
    assert copied(tree, ("a.py",), tmp_path / "before", bytes_max=100) == {}
    shutil.rmtree(root / "tree")
    (root / "tree").symlink_to(tmp_path / "outside")
    assert copied(tree, ("a.py",), tmp_path / "after", bytes_max=100).keys() == {"a.py"}
    assert list((tmp_path / "after").iterdir()) == []
