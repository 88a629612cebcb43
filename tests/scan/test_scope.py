"""Which files are looked at: what git knows or would take, else what a walk meets; never through a link (spec D-15)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testigo.errors import Invalid
from testigo.scan.scope import scope


def _write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n", "utf-8")


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def test_a_walk_follows_no_link_and_leaves_out_what_is_no_source(tmp_path: Path) -> None:
    """Links, binary files and what tools leave behind; the first two are counted."""
    tree = tmp_path / "tree"
    _write(tree, "a.py", "deep/b.py", "node_modules/c.js", "env/lib/d.py", "env/pyvenv.cfg")
    _write(tmp_path, "outside/secret.py")
    (tree / "link.py").symlink_to(tmp_path / "outside/secret.py")
    (tree / "folder").symlink_to(tmp_path / "outside")
    (tree / "image.bin").write_bytes(b"\x89\0\0")
    found = scope(tree)
    assert dict(found.files) == {"a.py": 6, "deep/b.py": 6}
    assert dict(found.left_out) == {"binary": 1, "link": 1}
    assert not found.by_git


def test_what_cannot_be_asked_for_by_its_name_is_not_passed_over(tmp_path: Path) -> None:
    """It is in scope under a name under which there is nothing: whoever takes it fails on it (spec D-24)."""
    tree = tmp_path / "tree"
    _write(tree, "bad\nname.py", "bad%0Aname.py", "c:x.py")
    (Path(os.fsdecode(bytes(tree) + b"/\xff.py"))).write_text("x = 1\n", "utf-8")
    found = scope(tree)
    assert dict(found.files) == {"%FF.py": 6, "%bad%0Aname.py": 6, "bad%0Aname.py": 6, "c%3Ax.py": 6}
    assert dict(found.left_out) == {}


def test_what_cannot_be_read_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is in scope, so that whoever takes it fails on it; a folder, which may hold anything, ends the scan."""
    _write(tmp_path, "a.py", "closed.py", "deep/b.py")
    opens, lists = os.open, os.scandir

    def closed(path: Any, *arguments: Any, **named: Any) -> int:
        if str(path).endswith("closed.py"):
            raise PermissionError(13, "Permission denied", str(path))
        return opens(path, *arguments, **named)

    monkeypatch.setattr(os, "open", closed)
    found = scope(tmp_path)
    assert (dict(found.files), dict(found.left_out)) == ({"a.py": 6, "closed.py": 6, "deep/b.py": 6}, {})

    def hidden(path: Any) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return lists(path)

    monkeypatch.setattr(os, "scandir", hidden)
    with pytest.raises(Invalid, match="deep' cannot be read: Permission denied"):
        scope(tmp_path)


def test_what_lies_below_a_tree_is_a_part_of_it(tmp_path: Path) -> None:
    """Named from there; anything else is named from itself, and a file alone is a part of its folder (spec D-24)."""
    tree = tmp_path / "tree"
    _write(tree, "a.py", "deep/b.py", "deep/er/c.py")
    folder, file = scope(tree / "deep", within=tree), scope(tree / "deep/b.py", within=tree)
    assert (folder.root, list(folder.files), folder.only) == (tree, ["deep/b.py", "deep/er/c.py"], "deep/")
    assert (file.root, list(file.files), file.only) == (tree, ["deep/b.py"], "deep/b.py")
    for within in (tree, tmp_path / "another", tree / "deep/er", None):
        whole = scope(tree, within=within)
        assert (whole.root, len(whole.files), whole.only) == (tree, 3, None)
    alone = scope(tree / "deep/b.py", within=tmp_path / "another")
    assert (alone.root, list(alone.files), alone.only) == (tree / "deep", ["b.py"], "b.py")


def test_in_a_repository_git_says_what_there_is(tmp_path: Path) -> None:
    """What is tracked and what is new, not what is ignored or gone; and of a folder in it, what is below."""
    _write(tmp_path, "kept.py", "gone.py", "new.py", "built/out.py", "inner/deep.py", ".gitignore")
    (tmp_path / ".gitignore").write_text("built/\n", "utf-8")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "kept.py", "gone.py", "inner")
    (tmp_path / "gone.py").unlink()
    found = scope(tmp_path)
    assert list(found.files) == [".gitignore", "inner/deep.py", "kept.py", "new.py"]
    assert dict(found.left_out) == {"gone": 1}
    assert found.by_git
    assert list(scope(tmp_path / "inner").files) == ["deep.py"]


def test_what_is_no_file_of_the_tree_is_counted(tmp_path: Path) -> None:
    """A repository within, added or not, and a pipe: nothing is passed over in silence (spec D-24)."""
    tree = tmp_path / "tree"
    _write(tree, "a.py", "inner/b.py")
    os.mkfifo(tree / "pipe")
    assert dict(scope(tree).left_out) == {"special": 1}
    for repository in (tree, tree / "inner"):
        _git(repository, "init", "-q")
    _git(tree / "inner", "add", "b.py")
    _git(tree / "inner", "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x")
    for _ in range(2):
        found = scope(tree)
        assert (list(found.files), dict(found.left_out)) == (["a.py"], {"repository": 1})
        _git(tree, "add", "a.py", "inner")


def test_a_repository_s_own_programs_are_not_run(tmp_path: Path) -> None:
    """A monitor that its settings name would run with the rights of whoever scans."""
    _write(tmp_path, "a.py")
    _git(tmp_path, "init", "-q")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", "utf-8")
    trap.chmod(0o755)
    _git(tmp_path, "config", "core.fsmonitor", str(trap))
    assert "a.py" in scope(tmp_path).files
    assert not (tmp_path / "sprung").exists()


def test_one_file_is_a_scope(tmp_path: Path) -> None:
    """Its folder is the root."""
    _write(tmp_path, "a.py", "b.py")
    found = scope(tmp_path / "a.py")
    assert (found.root, list(found.files)) == (tmp_path, ["a.py"])


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """By the name of the argument."""
    with pytest.raises(Invalid) as refused:
        scope(tmp_path / "nowhere")
    assert refused.value.field == "path"
