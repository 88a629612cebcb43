"""Which extra brings a module that a command asks for and this environment lacks."""

from __future__ import annotations

from testigo.cli.failures import Misuse

__all__ = ["EXTRAS", "lacking"]

EXTRAS = {
    "argon2": "web",
    "authlib": "web",
    "fastapi": "web",
    "h11": "web",
    "httpx": "web",
    "jinja2": "web",
    "starlette": "web",
    "uvicorn": "web",
    "cryptography": "evidence",
    "cyclonedx": "evidence",
    "ijson": "evidence",
}
"""The extra of each package that a part of testigo imports and the wheel alone does not bring."""


def lacking(error: ModuleNotFoundError) -> Misuse:
    """What to install; raises the error itself where no extra brings what it names: that is a user's own module."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise error
    return Misuse(f"This needs {package}, which is not here: pip install 'testigo[{EXTRAS[package]}]'.")
