"""Where in a result to go on reading: text that only the process that made it honours, for that result alone.

A cursor binds process, run, request, result and position under a secret that dies with the process (spec D-13).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from testigo.errors import CursorInvalid
from testigo.rules.identity import canonical

__all__ = ["CURSOR", "Cursors"]

CURSOR = re.compile(r"([0-9]{1,15})\.([0-9a-f]{64})")
"""A position and what vouches for it; to whoever reads pages it is text to be sent back as it came."""


class Cursors:
    """The cursors of one process."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(16)
        self._secret = secrets.token_bytes(32)

    def made(self, run: str, request: str, result: str, position: int) -> str:
        """The cursor of the finding at `position`, from 0, of that result."""
        return f"{position}.{self._vouched(run, request, result, position)}"

    def position(self, cursor: str, run: str, request: str, result: str) -> int:
        """The position that the cursor names. Raises `CursorInvalid` for one of another process or result."""
        found = CURSOR.fullmatch(cursor)
        position = int(found[1]) if found else 0
        vouched = self._vouched(run, request, result, position)
        if found is None or str(position) != found[1] or not hmac.compare_digest(vouched, found[2]):
            raise CursorInvalid("The cursor belongs to another result, or to a server that is gone.", field="cursor")
        return position

    def _vouched(self, run: str, request: str, result: str, position: int) -> str:
        bound = {"process": self._process, "run": run, "request": request, "result": result, "position": position}
        return hmac.new(self._secret, canonical(bound), hashlib.sha256).hexdigest()
