"""The spool is private, in memory where there is room, and removes what servers left that are gone (spec D-12)."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from testigo.errors import Broken, StoragePressure
from testigo.evidence.server.spool import MARK, Spool, size_of

ID = "0" * 32


def _base(parent: Path) -> Path:
    return parent / f"testigo-analyser-{os.getuid()}"


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask."""
    before = os.umask(0)
    try:
        spool = Spool.open(tmp_path / "spool")
        run = spool.take("run", 1)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (_base(tmp_path / "spool"), spool.folder, run)} == {0o700}
    assert stat.S_IMODE((spool.folder / "mark").stat().st_mode) == 0o600
    spool.close()
    assert list(_base(tmp_path / "spool").iterdir()) == []


def test_a_server_that_is_gone_is_recognised_and_one_that_lives_is_left_alone(tmp_path: Path) -> None:
    """By name, owner, mark and lock: a kill leaves no lock."""
    living = Spool.open(tmp_path)
    living.take("run", 1)
    gone = Spool.open(tmp_path)
    (gone.take("run", 1) / "findings").write_text("x")
    os.close(gone._mark)
    half = _base(tmp_path) / f".new-{ID}"
    shutil.copytree(gone.folder, half)
    spool = Spool.open(tmp_path)
    assert {path.name for path in _base(tmp_path).iterdir()} == {living.folder.name, spool.folder.name}
    assert (living.folder / "run").is_dir()
    living.close()
    spool.close()


def test_one_that_starts_is_left_alone_by_another_that_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment at which it can be recognised (spec D-12)."""
    writes = os.write

    def written(file: int, data: bytes) -> int:
        done = writes(file, data)
        monkeypatch.setattr(os, "write", writes)
        Spool.open(tmp_path).close()
        return done

    monkeypatch.setattr(os, "write", written)
    spool = Spool.open(tmp_path)
    assert (spool.folder / "mark").read_bytes() == MARK
    spool.close()


def test_what_is_not_its_own_stays(tmp_path: Path) -> None:
    """Another name, no mark, another mark, a link to somewhere, a link for a mark."""
    Spool.open(tmp_path).close()
    base = _base(tmp_path)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "mark").write_bytes(b"testigo analyser spool 1\n")
    (base / "notes").mkdir()
    for name, mark in ((ID, None), ("1" * 32, b"other\n"), ("2" * 32, b"testigo analyser spool 1\n\n")):
        (base / name).mkdir()
        if mark is not None:
            (base / name / "mark").write_bytes(mark)
    (base / ("3" * 32)).symlink_to(tmp_path / "precious")
    (base / ("4" * 32)).mkdir()
    (base / ("4" * 32) / "mark").symlink_to(tmp_path / "precious" / "mark")
    before = {path.name for path in base.iterdir()}
    Spool.open(tmp_path).close()
    assert {path.name for path in base.iterdir()} == before
    assert (tmp_path / "precious" / "mark").exists()


@pytest.mark.parametrize("how", ["open", "link", "file"])
def test_a_place_that_is_not_ours_alone_is_refused(tmp_path: Path, how: str) -> None:
    """Nothing is put where others could read or exchange it."""
    base = _base(tmp_path)
    if how == "open":
        base.mkdir(mode=0o755)
        base.chmod(0o755)
    elif how == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        base.symlink_to(tmp_path / "elsewhere")
    else:
        base.write_text("")
    with pytest.raises(Broken) as refusal:
        Spool.open(tmp_path)
    assert refusal.value.field == "spool"


def test_capacity_is_never_made_by_taking_from_others(tmp_path: Path) -> None:
    """What is asked for is reserved; what is settled takes what it takes; what is dropped is free (spec D-12)."""
    spool = Spool.open(tmp_path, capacity_bytes=1000 * 1024)
    first = spool.take("first", 600 * 1024)
    with pytest.raises(StoragePressure) as refusal:
        spool.take("second", 600 * 1024)
    assert refusal.value.limit == f"{1000 * 1024} bytes"
    assert not (spool.folder / "second").exists()
    (first / "findings").write_bytes(b"x" * 100 * 1024)
    spool.settle("first")
    assert 100 * 1024 <= size_of(first) < 200 * 1024
    spool.take("second", 600 * 1024)
    with pytest.raises(StoragePressure):
        spool.take("third", 600 * 1024)
    spool.drop("first")
    spool.drop("second")
    spool.take("third", 1000 * 1024)
    spool.close()


def test_what_the_system_does_not_make_takes_nothing(tmp_path: Path) -> None:
    """A run without a folder has no part of the capacity (spec D-12)."""
    spool = Spool.open(tmp_path, capacity_bytes=1000 * 1024)
    (spool.folder / "first").write_text("in its place")
    with pytest.raises(Broken, match="File exists"):
        spool.take("first", 600 * 1024)
    spool.take("second", 1000 * 1024)
    spool.drop("second")
    shutil.rmtree(spool.folder)
    with pytest.raises(Broken, match="No such file"):
        spool.take("first", 600 * 1024)
    spool.folder.mkdir()
    spool.take("second", 1000 * 1024)
    spool.close()


def test_one_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: without its mark nobody could tell whose it is."""

    def full(_file: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(Broken, match="No space left") as refusal:
            Spool.open(tmp_path)
    assert refusal.value.field == "spool"
    assert list(_base(tmp_path).iterdir()) == []


def test_without_a_name_it_is_in_memory_where_that_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is in the temporary folder, and says so."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = Spool.open(capacity_bytes=2**62)
    assert spool.folder.parent.parent == tmp_path
    spool.close()
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < 2**20:
        memory = tmp_path
    spool = Spool.open(capacity_bytes=2**20)
    assert spool.folder.parent.parent == memory
    assert spool.in_memory is (memory != tmp_path)
    spool.close()
