"""`testigo jobs`: look at jobs, submit and control them."""

from __future__ import annotations

from testigo.cli import call

__all__ = ["VERBS", "group"]

group = call.group("jobs", "Look at jobs, submit and control them.")

VERBS = {
    "list": "looking",
    "show": "looking",
    "explain": "looking",
    "submit": "submitting",
    "cancel": "controlling",
    "retry": "controlling",
    "unblock": "controlling",
    "wait": "following",
    "log": "following",
    "prune": "pruning",
}
"""The module of each, in the order of the help."""
