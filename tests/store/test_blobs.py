"""A blob is whole or absent, and what is read to its end is what was put (issue 2; spec A-17 builds on it)."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import BlobCorrupt, BlobsUnusable, Invalid, NotFound
from testigo.store.blobs import CHUNK_BYTES, Blob, BlobStore, blobs_directory

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# One server that has imported this module forks every process of these tests, which is quick and has no threads.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])
ABSENT = f"sha256:{'0' * 64}"
SIZES = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where blobs shall lie; not made yet."""
    return tmp_path / "below" / "blobs"


@pytest.fixture
def blobs(directory: Path) -> BlobStore:
    """An empty store."""
    return BlobStore(directory)


def place(directory: Path, blob: Blob) -> Path:
    """The file in which a blob lies."""
    return directory / "sha256" / blob.digest[7:9] / blob.digest[9:]


def files(directory: Path) -> list[Path]:
    """Every file below the directory."""
    return [path for path in directory.rglob("*") if not path.is_dir()]


def copied(blobs: BlobStore, digest: str) -> bytes:
    """The blob, by way of a stream."""
    target = io.BytesIO()
    assert blobs.copy_to(digest, target) == len(target.getvalue())
    return target.getvalue()


def opened(blobs: BlobStore, digest: str) -> bytes:
    """The blob, read in pieces of an odd size."""
    with blobs.open(digest) as stream:
        return b"".join(iter(lambda: stream.read(10_007), b""))


READERS = pytest.mark.parametrize("reader", [BlobStore.read, copied, opened])


@pytest.mark.parametrize("size", SIZES)
@READERS
def test_what_is_put_is_read(blobs: BlobStore, size: int, reader: Callable[[BlobStore, str], bytes]) -> None:
    """Bytes come back as they were, under their SHA-256, whichever way they are read (issue 2)."""
    data = os.urandom(size)
    blob = blobs.put(data)
    assert blob == Blob(f"sha256:{hashlib.sha256(data).hexdigest()}", size)
    assert reader(blobs, blob.digest) == data
    assert blobs.size(blob.digest) == size
    assert blobs.exists(blob.digest)


@given(data=st.binary(max_size=2000), read=st.integers(min_value=1, max_value=700))
def test_any_bytes_in_any_pieces(data: bytes, read: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No content and no way of reading it matters, for a source that yields a little at a time too (issue 2)."""
    blobs = BlobStore(tmp_path_factory.getbasetemp() / "any")
    blob = blobs.put(io.BufferedReader(_Trickle(data)))
    assert blob == blobs.put(data)
    with blobs.open(blob.digest) as stream:
        assert b"".join(iter(lambda: stream.read(read), b"")) == data


def test_a_stream_is_put_from_where_it_stands(blobs: BlobStore, tmp_path: Path) -> None:
    """A file that was read a bit gives its rest (issue 2)."""
    (tmp_path / "file").write_bytes(b"head and tail")
    with (tmp_path / "file").open("rb") as file:
        file.read(9)
        assert blobs.read(blobs.put(file).digest) == b"tail"


def test_a_blobs_stream_only_goes_forward(blobs: BlobStore) -> None:
    """Bytes that were skipped could not be verified, so a stream is read and not sought (issue 2)."""
    with blobs.open(blobs.put(b"bytes").digest) as stream:
        assert stream.readable()
        assert not stream.seekable()
        with pytest.raises(io.UnsupportedOperation):
            stream.seek(1)


@pytest.mark.needs_linux
def test_memory_does_not_grow_with_the_blob(directory: Path) -> None:
    """A blob of 256 MiB passes through put, open and copy_to in a process that may not have 64 MiB more (issue 2)."""
    worker = FORKS.Process(target=_pass_much, args=(directory,))
    worker.start()
    worker.join()
    assert worker.exitcode == 0


def test_putting_twice_is_putting_once_and_repairs(blobs: BlobStore, directory: Path) -> None:
    """The same bytes make the same blob in one file; where its file was damaged, it is sound again (issue 2)."""
    blob = blobs.put(b"the same")
    place(directory, blob).write_bytes(b"not same")
    assert blobs.put(b"the same") == blob
    assert blobs.read(blob.digest) == b"the same"
    assert files(directory) == [place(directory, blob)]


def test_blobs_are_closed_to_other_accounts(blobs: BlobStore, directory: Path) -> None:
    """What was too large for a row is as private as the rows, whatever the umask (issue 2)."""
    before = os.umask(0)
    try:
        path = place(directory, blobs.put(b"private"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (directory, *path.parents[:2])} == {0o700}


@pytest.mark.parametrize("size", [size for size in SIZES if size])
@pytest.mark.parametrize("where", ["first", "middle", "last"])
@READERS
def test_a_changed_byte_is_found_before_the_end(
    blobs: BlobStore, directory: Path, size: int, where: str, reader: Callable[[BlobStore, str], bytes]
) -> None:
    """One flipped bit anywhere, and no way of reading reaches the end (issue 2)."""
    blob = blobs.put(os.urandom(size))
    path = place(directory, blob)
    data = bytearray(path.read_bytes())
    data[{"first": 0, "middle": size // 2, "last": size - 1}[where]] ^= 1
    path.write_bytes(data)
    with pytest.raises(BlobCorrupt) as raised:
        reader(blobs, blob.digest)
    assert blob.digest in raised.value.message


@given(data=st.binary(min_size=1, max_size=300), kept=st.integers(min_value=0), more=st.binary(min_size=1, max_size=9))
def test_a_blob_that_was_cut_or_grew_is_corrupt(
    data: bytes, kept: int, more: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every shorter and every longer file is refused, not only a changed one (issue 2)."""
    directory = tmp_path_factory.getbasetemp() / "cut"
    blobs = BlobStore(directory)
    blob = blobs.put(data)
    for damaged in (data[: kept % len(data)], data + more):
        place(directory, blob).write_bytes(damaged)
        for reader in (BlobStore.read, copied, opened):
            with pytest.raises(BlobCorrupt):
                reader(blobs, blob.digest)


def test_a_corrupt_blob_gives_its_copy_no_end(blobs: BlobStore, directory: Path) -> None:
    """A copy of corrupt bytes is cut short, so that it cannot be taken for the blob (issue 2)."""
    blob = blobs.put(os.urandom(3 * CHUNK_BYTES))
    path = place(directory, blob)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    target = io.BytesIO()
    with pytest.raises(BlobCorrupt):
        blobs.copy_to(blob.digest, target)
    assert len(target.getvalue()) < blob.size


def test_a_blob_that_is_cut_while_it_is_read_is_corrupt(blobs: BlobStore, directory: Path) -> None:
    """A reader that is halfway learns of it (issue 2)."""
    blob = blobs.put(os.urandom(4 * CHUNK_BYTES))
    with blobs.open(blob.digest) as stream:
        stream.read(10)
        os.truncate(place(directory, blob), 2 * CHUNK_BYTES)
        for _ in range(2):
            with pytest.raises(BlobCorrupt):
                stream.read()


def test_what_is_no_file_is_corrupt(blobs: BlobStore, directory: Path, tmp_path: Path) -> None:
    """A link, a pipe or a folder in a blob's place is not followed, waited for or read (issue 2)."""
    blob = blobs.put(b"the bytes")
    path = place(directory, blob)
    path.rename(tmp_path / "elsewhere")
    for kind in ("link", "pipe", "folder"):
        match kind:
            case "link":
                path.symlink_to(tmp_path / "elsewhere")
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
        for ask in (blobs.read, blobs.size, blobs.exists, blobs.open):
            with pytest.raises(BlobCorrupt):
                ask(blob.digest)
        path.rename(tmp_path / kind)


def test_what_is_not_there_is_not_found(blobs: BlobStore) -> None:
    """An empty store, a deleted blob: NotFound, and `exists` says no (issue 2)."""
    blob = blobs.put(b"gone")
    blobs.delete(blob.digest)
    for digest in (blob.digest, ABSENT):
        assert not blobs.exists(digest)
        for ask in (blobs.read, blobs.size, blobs.open, blobs.delete, lambda name: blobs.copy_to(name, io.BytesIO())):
            with pytest.raises(NotFound) as raised:
                ask(digest)
            assert digest in raised.value.message


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "sha256:",
        "0" * 64,
        f"sha256:{'0' * 63}",
        f"sha256:{'0' * 65}",
        f"sha256:{'A' * 64}",
        f"sha256:{'0' * 64}\n",
        "sha256:" + "\N{ARABIC-INDIC DIGIT ZERO}" * 64,
        f"sha256:../../../{'0' * 55}",
        f"sha256:{'0' * 62}/.",
        f"sha256:{'0' * 63}\0",
        f"sha512:{'0' * 64}",
        f"../sha256:{'0' * 64}",
        "/etc/passwd",
        None,
        5,
        b"sha256:" + b"0" * 64,
    ],
)
def test_what_is_no_digest_is_refused(blobs: BlobStore, digest: Any) -> None:
    """Only 64 lower-case hexadecimal digits reach the disk, so no name leads elsewhere (issue 2)."""
    for ask in (blobs.read, blobs.size, blobs.exists, blobs.open, blobs.delete):
        with pytest.raises(Invalid) as raised:
            ask(digest)
        assert raised.value.field == "digest"


def test_a_source_that_fails_leaves_nothing(blobs: BlobStore, directory: Path) -> None:
    """What the source raises is passed on, and no part of a blob remains (issue 2)."""
    with pytest.raises(ConnectionResetError):
        blobs.put(io.BufferedReader(_Trickle(b"x" * 3000, then=ConnectionResetError())))
    for wrong in (io.StringIO("text"), "text", None, [b"text"]):
        with pytest.raises(Invalid) as raised:
            blobs.put(wrong)  # type: ignore[arg-type]  # what an untyped caller does
        assert raised.value.field == "source"
    assert files(directory) == []


def test_processes_put_the_same_blobs_at_once(blobs: BlobStore, directory: Path) -> None:
    """Writers of the same bytes do not disturb one another, and nothing but blobs is left (issue 2)."""
    barrier = FORKS.Barrier(4)
    writers = [FORKS.Process(target=_put_forty, args=(directory, barrier)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    kept = files(directory)
    assert len(kept) == 40
    assert {path.parent.parent for path in kept} == {directory / "sha256"}
    for path in kept:
        assert len(blobs.read(f"sha256:{path.parent.name}{path.name}")) == 100_000


def test_a_writer_that_is_killed_leaves_only_what_sweep_removes(blobs: BlobStore, directory: Path) -> None:
    """SIGKILL in the middle of a put: no blob, one file in `incoming`, none after the sweep (issue 2)."""
    sound = blobs.put(b"sound")
    writer = subprocess.Popen(
        [sys.executable, "-c", _PUT_STDIN, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    with writer:
        writer.stdin.write(b"x" * 2 * CHUNK_BYTES)
        writer.stdin.flush()
        assert writer.stdout.readline() == b"has read\n"
        writer.kill()
    left = [path for path in files(directory) if path != place(directory, sound)]
    assert [path.parent for path in left] == [directory / "incoming"]
    assert blobs.sweep(older_than_seconds=3600) == 0
    assert blobs.sweep(older_than_seconds=0) == 1
    assert blobs.sweep(older_than_seconds=0) == 0
    assert files(directory) == [place(directory, sound)]
    assert blobs.read(sound.digest) == b"sound"


def test_a_writer_whose_file_was_swept_keeps_nothing_and_says_so(blobs: BlobStore, directory: Path) -> None:
    """A put that paused for longer than the sweep allows fails, and what it would have kept is absent (issue 2)."""

    class Swept(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: WriteableBuffer, /) -> int:
            assert blobs.sweep(older_than_seconds=0) == 1
            return 0

    with pytest.raises(BlobsUnusable):
        blobs.put(io.BufferedReader(Swept()))
    assert files(directory) == []


@pytest.mark.parametrize("age", [-1, float("nan"), True, "1", None])
def test_a_sweep_of_no_age_is_refused(blobs: BlobStore, age: Any) -> None:
    """An age that would take the files of living writers is an error (issue 2)."""
    with pytest.raises(Invalid):
        blobs.sweep(age)


def test_a_sweep_before_the_first_put_finds_nothing(blobs: BlobStore, directory: Path) -> None:
    """A store that was never written is not made by looking (issue 2)."""
    assert blobs.sweep(0) == 0
    assert not directory.exists()


def test_a_full_disk_is_an_error_and_leaves_no_part_of_a_blob(directory: Path) -> None:
    """What does not fit is refused as a whole; what fits afterwards is kept (issue 2)."""
    worker = FORKS.Process(target=_put_too_much, args=(directory,))
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    assert [path.stat().st_size for path in files(directory)] == [1000]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in the way is an error with a code, for readers too (issue 2)."""
    (tmp_path / "file").write_bytes(b"mine")
    for blobs in (BlobStore(tmp_path / "file"), BlobStore(tmp_path / "file" / "below")):
        with pytest.raises(BlobsUnusable, match="file"):
            blobs.put(b"x")
        with pytest.raises(BlobsUnusable, match="file"):
            blobs.read(ABSENT)


class _Trickle(io.RawIOBase):
    """A source that yields 700 bytes at a time, then ends, or fails."""

    def __init__(self, data: bytes, then: Exception | None = None) -> None:
        self._rest = data
        self._then = then

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        piece, self._rest = self._rest[:700], self._rest[700:]
        if not piece and self._then:
            raise self._then
        memoryview(buffer).cast("B")[: len(piece)] = piece
        return len(piece)


class _Zeros(io.RawIOBase):
    """A source of so many zero bytes, which takes no room itself."""

    def __init__(self, size: int) -> None:
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")[: self._left]
        self._left -= len(view)
        view[:] = bytes(len(view))
        return len(view)


def _put_forty(directory: Path, barrier: Barrier) -> None:
    blobs = BlobStore(directory)
    for n in range(40):
        barrier.wait()
        blobs.put(n.to_bytes(4, "big") * 25_000)


def _pass_much(directory: Path) -> None:
    blobs = BlobStore(directory)
    blobs.put(b"warm")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    blob = blobs.put(io.BufferedReader(_Zeros(256 << 20)))
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - devnull is a name, not a path of ours
        assert blobs.copy_to(blob.digest, nowhere) == 256 << 20
    blobs.delete(blob.digest)


def test_what_is_there_is_told_by_its_digests(blobs: BlobStore, directory: Path) -> None:
    """In their order, without what is being written and whatever else lies there."""
    assert list(blobs.digests()) == []
    put = [blobs.put(bytes([each])).digest for each in range(20)]
    (directory / "incoming" / "left").touch()
    (directory / "sha256" / "note").mkdir()
    (directory / "sha256" / "note" / "x").touch()
    assert list(blobs.digests()) == sorted(put)


def test_the_folder_is_named_or_lies_among_the_installations_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`TESTIGO_BLOBS` comes first."""
    assert blobs_directory(tmp_path) == tmp_path / "blobs"
    monkeypatch.setenv("TESTIGO_BLOBS", "/elsewhere")
    assert blobs_directory(tmp_path) == Path("/elsewhere")


def _put_too_much(directory: Path) -> None:
    # A limit on the size of a file stands for the disk's: the write fails in the middle in the same way.
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * CHUNK_BYTES // 2, resource.RLIM_INFINITY))
    blobs = BlobStore(directory)
    with pytest.raises(BlobsUnusable):
        blobs.put(b"x" * 2 * CHUNK_BYTES)
    assert files(directory) == []
    blobs.put(b"x" * 1000)


_PUT_STDIN = f"""
import sys
from pathlib import Path
from testigo.store.blobs import BlobStore
class Told:
    def read(self, size):
        if self.reads == 2:
            print("has read", flush=True)
        self.reads += 1
        return sys.stdin.buffer.read({CHUNK_BYTES})
    reads = 0
BlobStore(Path(sys.argv[1])).put(Told())
"""
