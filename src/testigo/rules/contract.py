"""What only a retry reads of a job's contract, as the JSON text that is kept with the job.

The rest of the contract (attempts, crash limit, timeout) has columns of its own, since statements
read it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from testigo.rules.retries import Backoff, Exponential, backoff_from_json, backoff_to_json
from testigo.settings import CONTRACT

__all__ = ["Terms", "contract_terms", "contract_text"]


class Terms(NamedTuple):
    """How a job waits between its tries, and how much waiting and cost its contract allows."""

    backoff: Backoff
    delay_limit_seconds: float | None
    cost_limit: float | None


@lru_cache(maxsize=1024)
def contract_text(backoff: Backoff | None, delay_limit_seconds: float | None, cost_limit: float | None) -> str:
    """The text to keep; without a backoff, the default: exponential with full jitter."""
    backoff = backoff or Exponential(CONTRACT.backoff_first_seconds, CONTRACT.backoff_cap_seconds)
    members: dict[str, object] = {"backoff": backoff_to_json(backoff)}
    if delay_limit_seconds is not None:
        members["delay_limit_seconds"] = delay_limit_seconds
    if cost_limit is not None:
        members["cost_limit"] = cost_limit
    return json.dumps(members, separators=(",", ":"))


@lru_cache(maxsize=1024)
def contract_terms(text: str) -> Terms:
    """What `contract_text` wrote."""
    members = json.loads(text)
    return Terms(backoff_from_json(members["backoff"]), members.get("delay_limit_seconds"), members.get("cost_limit"))
