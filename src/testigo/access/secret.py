"""Secrets that chance makes: what a cookie, a link or a token holds, and the digest by which it is kept.

A secret of 256 bits cannot be guessed, so one round of SHA-256 is enough to keep it by; passwords,
which can be guessed, are another matter (`passwords`).
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from testigo.rules.identity import content_digest

__all__ = ["Secret", "digest_of", "is_secret"]

_WRITTEN = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret that is shown only by whoever asks for its `text`: it is in no `repr`, and so in no log."""

    text: str

    @classmethod
    def new(cls) -> Secret:
        """A new one: 64 hexadecimal digits."""
        return cls(secrets.token_hex(32))

    @property
    def digest(self) -> str:
        """What is kept of it."""
        return digest_of(self.text)

    def __repr__(self) -> str:
        return "Secret(…)"


def digest_of(presented: str) -> str:
    """The digest of what somebody presents as a secret, whatever text it is."""
    return content_digest(presented.encode(errors="surrogatepass"))


def is_secret(presented: str) -> bool:
    """Whether this is written as chance's secrets are: what is not need not be looked for."""
    return _WRITTEN.fullmatch(presented) is not None
