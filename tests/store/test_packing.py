"""A backup in one file is unpacked into its own folder, or not at all: as every Python that is served can."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from testigo.errors import BackupInvalid
from testigo.store.backup import opened, packed


def member(name: str, kind: bytes = tarfile.REGTYPE, **facts: object) -> tarfile.TarInfo:
    """A member of that name and kind."""
    made = tarfile.TarInfo(name)
    made.type = kind
    for fact, value in facts.items():
        setattr(made, fact, value)
    return made


def test_what_was_packed_is_unpacked(tmp_path: Path) -> None:
    """Folders and files, byte for byte, and nothing that a mode in the file asks for."""
    with packed(tmp_path / "b.tar") as folder:
        (folder / "tables").mkdir(mode=0o700)
        (folder / "tables" / "a.gz").write_bytes(b"rows" * 10_000)
        (folder / "manifest.json").write_text("{}")
        (folder / "manifest.json").chmod(0o4755)
    with opened(tmp_path / "b.tar") as folder:
        found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        assert found == {"tables", "tables/a.gz", "manifest.json"}
        assert (folder / "tables" / "a.gz").read_bytes() == b"rows" * 10_000
        assert (folder / "manifest.json").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(
    "members",
    [
        [member("../out")],
        [member("a/../../out")],
        [member("/tmp/out")],
        [member("a\\b/../../../out")],
        [member("link", tarfile.SYMTYPE, linkname="/etc")],
        [member("link", tarfile.LNKTYPE, linkname="../out")],
        [member("pipe", tarfile.FIFOTYPE)],
        [member("disk", tarfile.BLKTYPE)],
        [member("sparse", tarfile.GNUTYPE_SPARSE)],
        [member("twice"), member("twice")],
        [member("file"), member("file/below")],
    ],
    ids=lambda members: " ".join(each.name for each in members),
)
def test_what_is_no_plain_file_in_it_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    """Names that lead elsewhere, links, devices, holes, and a file over another."""
    file = tmp_path / "in" / "b.tar"
    file.parent.mkdir()
    with tarfile.open(file, "w") as tar:
        for each in members:
            tar.addfile(each, io.BytesIO(b""))
    with pytest.raises(BackupInvalid), opened(file):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "b.tar"]


def test_a_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    """It ends in the middle of a member."""
    with packed(tmp_path / "b.tar") as folder:
        (folder / "manifest.json").write_bytes(b"x" * 100_000)
    (tmp_path / "b.tar").write_bytes((tmp_path / "b.tar").read_bytes()[:50_000])
    with pytest.raises(BackupInvalid), opened(tmp_path / "b.tar"):
        pass


OLD = """
import sys, tarfile
from pathlib import Path
for name in ("data_filter", "tar_filter", "fully_trusted_filter"):
    vars(tarfile).pop(name, None)
whole = tarfile.TarFile.extractall
def extractall(self, path=".", members=None, *, numeric_owner=False):
    return whole(self, path, members, numeric_owner=numeric_owner)
tarfile.TarFile.extractall = extractall
from testigo.store.backup import opened
with opened(Path(sys.argv[1])) as folder:
    print((folder / "manifest.json").read_text())
"""


def test_it_is_unpacked_by_a_python_whose_tarfile_has_no_filters(tmp_path: Path) -> None:
    """As that of Debian 12 is, 3.11.2."""
    with packed(tmp_path / "b.tar") as folder:
        (folder / "manifest.json").write_text("whole")
    done = subprocess.run([sys.executable, "-c", OLD, tmp_path / "b.tar"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("whole\n", "")
