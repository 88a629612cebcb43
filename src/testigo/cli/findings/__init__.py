"""`testigo findings`: what analysers found, what was decided about it, and both for other programs."""

from __future__ import annotations

from testigo.cli import call
from testigo.cli.findings import deciding, exporting, looking

__all__ = ["group"]

group = call.group("findings", "Look at findings, decide about them, and export them.")

for verbs in (looking.group, deciding.group, exporting.group):
    group.registered_commands += verbs.registered_commands
