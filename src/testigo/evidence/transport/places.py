"""Where an installation's analyser server and its clients meet, told by nothing but the installation itself."""

from __future__ import annotations

import os
from pathlib import Path

from testigo.errors import Invalid
from testigo.store.embedded import default_directory
from testigo.store.keys import Keyring, keys_directory
from testigo.store.urls import embedded_directory

__all__ = ["ADDRESS_VARIABLE", "PORT", "TOKEN_VARIABLE", "address", "apart", "keys", "token"]

TOKEN_VARIABLE = "TESTIGO_ANALYSER_TOKEN"  # noqa: S105
ADDRESS_VARIABLE = "TESTIGO_ANALYSER"
PORT = 8040
"""Where the server listens on loopback unless it is told otherwise."""
TOKEN_CHARS_MIN = 16


def address() -> str:
    """Where the server is, as clients say it: what `TESTIGO_ANALYSER` names, else the usual port of loopback."""
    return os.environ.get(ADDRESS_VARIABLE) or f"http://127.0.0.1:{PORT}"


def keys(url: str) -> Path:
    """The folder of the installation's keys: what `TESTIGO_KEYS` names, else one beside its data, or in the project."""
    return keys_directory(_beside(url))


def apart(url: str) -> Path:
    """The folder of analysers that have environments of their own."""
    return _beside(url) / "analysers"


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
    return embedded_directory(url) or default_directory(Path.cwd())
