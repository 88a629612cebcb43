"""The installation's secrets are made once, read by their owner alone, and refused where others could have been."""

from __future__ import annotations

import multiprocessing
import os
import stat
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid, KeysUnusable
from testigo.store.keys import Keyring, keys_directory

# One server that has imported this module forks every process of these tests, which is quick and has no threads.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where keys shall lie; not made yet."""
    return tmp_path / "below" / "keys"


def refusal(folder: Path, name: str = "seal") -> str:
    """The message with which a key of the folder is refused; never with bytes of it."""
    with pytest.raises(KeysUnusable) as raised:
        Keyring.open(folder).secret(name)
    assert raised.value.remedy
    return raised.value.message


def test_a_secret_is_made_once_and_read_ever_after(folder: Path) -> None:
    """The same name gives the same bytes, another name others, in files of mode 0600 in a folder of 0700 (issue 2)."""
    first = Keyring.open(folder).secret("seal", 48)
    assert len(first) == 48
    assert Keyring.open(folder).secret("seal", 48) == first
    assert Keyring.open(folder).secret("cursor", 48) != first
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["cursor", "seal"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_wide_umask_does_not_open_keys(folder: Path) -> None:
    """Modes are chosen, not left to the umask (issue 2)."""
    before = os.umask(0)
    try:
        Keyring.open(folder).secret("seal")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "seal").stat().st_mode) == 0o600


def test_processes_that_ask_at_once_get_the_same_bytes(folder: Path) -> None:
    """However many make a key at the same instant, one is made and all have it (issue 2)."""
    barrier = FORKS.Barrier(4)
    pipes = [FORKS.Pipe(duplex=False) for _ in range(4)]
    makers = [FORKS.Process(target=_make_fifty, args=(folder, barrier, there)) for _, there in pipes]
    for maker in makers:
        maker.start()
    answers = [here.recv() for here, _ in pipes]
    for maker in makers:
        maker.join()
    for pipe in pipes:
        pipe[0].close()
        pipe[1].close()
    assert len(set(answers[0])) == 50
    assert answers.count(answers[0]) == 4
    assert len(list(folder.iterdir())) == 50


def test_a_maker_that_was_killed_leaves_the_key_it_made_or_none(folder: Path) -> None:
    """What it had written beside the key's place is never taken for the key, and prevents nothing (issue 2)."""
    keyring = Keyring.open(folder)
    (folder / ".seal.0123456789abcdef").write_bytes(b"half")
    made = keyring.secret("seal")
    assert len(made) == 32
    os.link(folder / "seal", folder / ".seal.fedcba9876543210")
    assert keyring.secret("seal") == made


def test_a_keyring_shows_no_bytes(folder: Path) -> None:
    """Neither a keyring's repr nor a refusal holds what a key holds (issue 2)."""
    keyring = Keyring.open(folder)
    value = keyring.secret("seal", 16)
    assert repr(keyring) == f"Keyring(directory={folder!r})"
    (folder / "seal").write_bytes(value[:15])
    assert repr(value[:8])[2:-1] not in refusal(folder)


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o701, 0o720])
def test_a_folder_that_others_may_use_is_refused_and_not_repaired(folder: Path, mode: int) -> None:
    """Any right of others makes the folder's keys suspect, and whose they are is the owner's to say (issue 2)."""
    Keyring.open(folder)
    folder.chmod(mode)
    assert f"{mode:04o}" in refusal(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602])
def test_a_key_that_others_may_use_is_refused(folder: Path, mode: int) -> None:
    """A key that others may read is no secret, and one that they may write is theirs (issue 2)."""
    Keyring.open(folder).secret("seal")
    (folder / "seal").chmod(mode)
    assert f"{mode:04o}" in refusal(folder)


def test_links_and_what_is_no_file_are_refused(folder: Path, tmp_path: Path) -> None:
    """A symbolic link, a pipe or a folder in a key's place, or a link in the folder's, is no key (issue 2)."""
    keyring = Keyring.open(folder)
    keyring.secret("seal")
    (folder / "link").symlink_to(folder / "seal")
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "folder").mkdir(mode=0o700)
    for name in ("link", "pipe", "folder"):
        assert name in refusal(folder, name)
    around = tmp_path / "around"
    around.symlink_to(folder)
    assert "around" in refusal(around)
    (tmp_path / "file").touch(0o600)
    assert "file" in refusal(tmp_path / "file")


@pytest.mark.needs_root
def test_another_accounts_keys_are_refused(folder: Path) -> None:
    """Who owns a key may change it, so it must be us (issue 2)."""
    Keyring.open(folder).secret("seal")
    os.chown(folder / "seal", 65534, 65534)
    assert "belongs to uid 65534" in refusal(folder)
    os.chown(folder, 65534, 65534)
    assert "belongs to uid 65534" in refusal(folder, "other")


@pytest.mark.parametrize("held", [b"", b"x" * 31, b"x" * 33, b"x" * 5000])
def test_a_key_of_another_size_is_refused(folder: Path, held: bytes) -> None:
    """A key that was cut, grown or asked for with another size is not passed off as the one that is meant (issue 2)."""
    Keyring.open(folder).secret("seal")
    (folder / "seal").write_bytes(held)
    assert "32 bytes" in refusal(folder)


@given(name=st.text(max_size=80) | st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True))
def test_a_name_is_never_a_path(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is no short lower-case name is refused, so that no name leaves the folder (issue 2)."""
    folder = tmp_path_factory.getbasetemp() / "named" / "keys"
    keyring = Keyring.open(folder)
    with suppress(Invalid):
        keyring.secret(name)
        assert name.isascii()
        assert name.replace("-", "a").isalnum()
        assert (folder / name).is_file()
    assert [path.name for path in folder.parent.iterdir()] == ["keys"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../seal", "/etc/passwd", "a/b", "Seal", "a\n", "a\0b", "-a", "a" * 65, None, b"seal"]
)
def test_names_that_are_none_are_refused(folder: Path, name: Any) -> None:
    """The refusal names the field (issue 2)."""
    with pytest.raises(Invalid) as raised:
        Keyring.open(folder).secret(name)
    assert raised.value.field == "name"


@pytest.mark.parametrize("size", [-1, 0, 15, 1025, 32.0, True, "32", None])
def test_sizes_that_protect_nothing_are_refused(folder: Path, size: Any) -> None:
    """The refusal names the field and its limit (issue 2)."""
    with pytest.raises(Invalid) as raised:
        Keyring.open(folder).secret("seal", size)
    assert raised.value.field == "size"
    if type(size) is int:
        assert raised.value.limit == "16 to 1024"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A file above it, or a name that no system has, is an error that says so (issue 2)."""
    (tmp_path / "file").touch()
    assert "cannot be made" in refusal(tmp_path / "file" / "keys")
    assert "cannot be made" in refusal(Path("/tmp/a\0b"))


def test_the_folder_is_the_variables_or_beside_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`TESTIGO_KEYS` names the folder; without it, keys lie beside the embedded data (issue 2)."""
    monkeypatch.delenv("TESTIGO_KEYS", raising=False)
    assert keys_directory(tmp_path) == tmp_path / "keys"
    monkeypatch.setenv("TESTIGO_KEYS", "/run/keys")
    assert keys_directory(tmp_path) == Path("/run/keys")


def _make_fifty(folder: Path, barrier: Barrier, answer: Connection) -> None:
    keyring = Keyring.open(folder)
    made = []
    for n in range(50):
        barrier.wait()
        made.append(keyring.secret(f"key-{n}"))
    answer.send(made)
