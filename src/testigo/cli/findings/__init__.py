"""`testigo findings`: what analysers found, what people did about it, and both for other programs."""

from __future__ import annotations

from testigo.cli import call

__all__ = ["VERBS", "group"]

group = call.group("findings", "Look at findings, decide about them, and export them.")

VERBS = {
    "list": "looking",
    "show": "looking",
    "history": "looking",
    "decide": "deciding",
    "exempt": "exempting",
    "unexempt": "exempting",
    "advise": "advising",
    "delete": "deleting",
    "export": "exporting",
}
"""The module of each, in the order of the help."""
