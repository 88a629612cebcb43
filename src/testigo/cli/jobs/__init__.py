"""`testigo jobs`: look at jobs, submit and control them."""

from __future__ import annotations

from testigo.cli import call
from testigo.cli.jobs import controlling, following, looking, pruning, submitting

__all__ = ["group"]

group = call.group("jobs", "Look at jobs, submit and control them.")

for verbs in (looking.group, submitting.group, controlling.group, following.group, pruning.group):
    group.registered_commands += verbs.registered_commands
