"""What it may cost to ask with a login or a token that nobody has: a query at most, and only so often from one address.

A credential that was found valid before is no stranger's: whoever guesses from the same address, behind a proxy
that was not named to us, does not have those who are known refused.
"""

from __future__ import annotations

from collections import OrderedDict

from testigo.access.throttle import network_of
from testigo.web.security.rate import Rate

__all__ = ["Strangers"]

_MET_MAX = 10_000
"""Credentials that are remembered; one that was forgotten counts once more."""


class Strangers:
    """The credentials that one server process has met, by their digests; the rate is that of other callers."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._met: OrderedDict[str, None] = OrderedDict()

    def admit(self, digest: str, address: str | None) -> None:
        """Count a credential that was never met, before it is looked up. Raises `TooManyRequests` for one too many."""
        if digest in self._met:
            self._met.move_to_end(digest)
        else:
            self._rate.count(f"strangers:{network_of(address or '')}")

    def meet(self, digest: str) -> None:
        """Remember a credential that was found valid. It is looked up again at each request all the same."""
        self._met[digest] = None
        if len(self._met) > _MET_MAX:
            self._met.popitem(last=False)

    def forget(self, digest: str) -> None:
        """Count a credential that was looked up and is nobody's, or nobody's any more, as any other stranger's."""
        self._met.pop(digest, None)
