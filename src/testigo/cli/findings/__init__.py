"""`testigo findings`: what analysers found, what people did about it, and both for other programs."""

from __future__ import annotations

from testigo.cli import call
from testigo.cli.findings import advising, deciding, deleting, exempting, exporting, looking

__all__ = ["group"]

group = call.group("findings", "Look at findings, decide about them, and export them.")

for verbs in (looking, deciding, exempting, advising, deleting, exporting):
    group.registered_commands += verbs.group.registered_commands
