"""What a refusal means, without its facts: what a page says where the refusal's own words have no translation."""

from __future__ import annotations

from collections.abc import Mapping

from testigo.errors import (
    AuthorityUnavailable,
    Broken,
    Busy,
    Conflict,
    CursorInvalid,
    CursorTooOld,
    Denied,
    Error,
    Forbidden,
    Invalid,
    KeyBusy,
    Missing,
    PayloadTooLarge,
    RevisionMismatch,
    StateConflict,
    Terminal,
    TooManyRequests,
    Unauthenticated,
)

__all__ = ["MEANINGS", "UNEXPECTED", "meaning"]

UNEXPECTED = "Something went wrong that should not."

MEANINGS: Mapping[type[Exception], str] = {
    Invalid: "What was sent breaks a limit. Nothing was done.",
    PayloadTooLarge: "What was sent is too large. Nothing was done.",
    CursorInvalid: "The place in the list that was asked for is none of this list.",
    Conflict: "It is not as it was assumed to be. Nothing was done.",
    RevisionMismatch: "It is no longer as you saw it. Nothing was done.",
    StateConflict: "That cannot be done to it as it is. Nothing was done.",
    Terminal: "It has ended, and what has ended does not change.",
    Missing: "There is no such thing, or not any more.",
    CursorTooOld: "What was there has been pruned.",
    Denied: "You may not do this. Nothing was done.",
    Unauthenticated: "You are not logged in, or your login has ended.",
    Forbidden: "Your role may not do this. Nothing was done.",
    Busy: "That cannot be done just now.",
    KeyBusy: "Somebody else is at it just now.",
    TooManyRequests: "Too much was asked in a short time.",
    AuthorityUnavailable: "The database does not answer.",
    Broken: "The installation needs a hand.",
    Error: UNEXPECTED,
}
"""By class of error; a class that is not here means what the nearest above it means."""


def meaning(error: Exception) -> str:
    """What this error means."""
    return next((MEANINGS[each] for each in type(error).__mro__ if each in MEANINGS), UNEXPECTED)
