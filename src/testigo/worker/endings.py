"""What a handler returns or raises besides a plain value: the ways in which a run may end.

    return Degraded(value, limitations=["the last chunk is missing"])
    raise Permanent("no-such-file", "the file is not there")
    raise RetryAfter(30)
    raise Blocked("the budget is spent", needs="an approval", checkpoint=position)
    raise Yielded(position)

Any other exception is a failure that may be retried. Each refuses, by field and limit, what could not be
kept, in the handler's own line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.settings import LIMITS

__all__ = ["Blocked", "Degraded", "Ending", "Permanent", "RetryAfter", "Yielded"]

R = TypeVar("R", covariant=True)


class Degraded(Generic[R]):
    """Returned by a handler whose work is done within named limitations (spec A-13).

    `limitations` are one to 1,000 names of one line each. Raises `Invalid` for any other.
    """

    __slots__ = ("limitations", "value")

    def __init__(self, value: R, limitations: Iterable[str]) -> None:
        if isinstance(limitations, str):
            raise Invalid("A list of limitations is needed, not one text.", field="limitations")
        named = tuple(limitations)
        if not 1 <= len(named) <= LIMITS.page_max:
            raise Invalid(
                f"There are {len(named)} limitations.", field="limitations", limit=f"1 to {LIMITS.page_max} names"
            )
        self.value = value
        self.limitations = tuple(fields.name(each, field=f"limitations[{n}]") for n, each in enumerate(named))

    def __repr__(self) -> str:
        return f"Degraded({self.value!r}, limitations={list(self.limitations)!r})"


class Ending(Exception):
    """The root of what a handler raises to end its run in a way of its own."""


class Permanent(Ending):
    """The work failed, and no retry would help: the job ends (spec A-14).

    `code` is a name of one line for programs, `message` a sentence for people. Raises `Invalid` for a
    code that is no name.
    """

    def __init__(self, code: str, message: str = "") -> None:
        self.code = fields.name(code, field="code")
        self.message = message
        super().__init__(code, message)


class RetryAfter(Ending):
    """The work failed for now; the next try may begin after `seconds`, in place of the contract's backoff.

    It counts as a failure and widens no budget (spec A-14). Raises `Invalid` for what is no span of time.
    """

    def __init__(self, seconds: float, message: str = "") -> None:
        self.seconds = fields.seconds(seconds, field="seconds")
        self.message = message
        super().__init__(seconds, message)


class Blocked(Ending):
    """The work cannot go on without something from outside, which `needs` names (spec A-13, B-14).

    Somebody unblocks the job; its next run begins from `checkpoint`, or, where it is None, from the last
    that was saved.
    """

    def __init__(self, reason: str, needs: str = "", checkpoint: object = None) -> None:
        self.reason = reason
        self.needs = needs
        self.checkpoint = checkpoint
        super().__init__(reason, needs, checkpoint)


class Yielded(Ending):
    """The run leaves its place to others; the job goes on later from `checkpoint` (spec B-13)."""

    def __init__(self, checkpoint: object) -> None:
        self.checkpoint = checkpoint
        super().__init__(checkpoint)
