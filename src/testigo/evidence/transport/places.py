"""Where an installation's analyser server and its clients meet, told by nothing but the installation itself."""

from __future__ import annotations

import os
from pathlib import Path

from testigo.errors import Invalid
from testigo.store.keys import Keyring, keys_directory
from testigo.store.urls import own_directory

__all__ = ["ADDRESS_VARIABLE", "APART_VARIABLE", "PORT", "TOKEN_VARIABLE", "address", "apart", "keys", "token"]

TOKEN_VARIABLE = "TESTIGO_ANALYSER_TOKEN"  # noqa: S105
ADDRESS_VARIABLE = "TESTIGO_ANALYSER"
APART_VARIABLE = "TESTIGO_ANALYSERS"
PORT = 8040
"""Where the server listens on loopback unless it is told otherwise."""
TOKEN_CHARS_MIN = 16


def address() -> str:
    """Where the server is, as clients say it: what `TESTIGO_ANALYSER` names, else the usual port of loopback."""
    return os.environ.get(ADDRESS_VARIABLE) or f"http://127.0.0.1:{PORT}"


def keys(url: str) -> Path:
    """The folder of the installation's keys: what `TESTIGO_KEYS` names, else one beside its data, or in the project."""
    return keys_directory(_beside(url))


def apart() -> Path:
    """The folder of analysers that have environments of their own: what `TESTIGO_ANALYSERS` names, else the user's.

    It is never one of the folder that a command runs in: that may be the tree, which brings no programs to be run.
    """
    named = os.environ.get(APART_VARIABLE)
    if named:
        return Path(named).absolute()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "testigo" / "analysers"


def token(url: str) -> str:
    """What clients prove themselves with: what `TESTIGO_ANALYSER_TOKEN` says, else a key of the installation.

    Raises `Invalid` for a token of less than 16 printable characters, and `KeysUnusable`.
    """
    said = os.environ.get(TOKEN_VARIABLE)
    if said is None:
        return Keyring.open(keys(url)).secret("analyser", 32).hex()
    if len(said) < TOKEN_CHARS_MIN or not said.isascii() or not said.isprintable() or " " in said:
        raise Invalid(
            "The token is too short, or not of printable ASCII.",
            field=TOKEN_VARIABLE,
            limit=f"at least {TOKEN_CHARS_MIN} characters",
        )
    return said


def _beside(url: str) -> Path:
    return own_directory(url)
