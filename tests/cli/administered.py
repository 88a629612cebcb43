"""Commands with which an installation is looked after, for tests that keep what commands answer."""

from __future__ import annotations

from testigo.rules.outcomes import Block
from tests.world import World

__all__ = ["PASSWORD", "commands"]

PASSWORD = "correct horse"
"""What each that reads a password is given on stdin."""


def commands(world: World) -> list[list[str]]:
    """Who may do what, what is made from outside of a program, and what is kept elsewhere."""
    (blocked,) = world.submit(kind="report", queue="reports")
    worker = world.worker("host-a", ("reports",), ("report",))
    worker.settle((worker.take(), Block("approval")))
    return [
        ["user", "list"],
        ["user", "add", "Ana", "--role", "operator", "--no-password"],
        ["user", "add", "ana", "--no-password"],
        ["user", "add", "bea", "--role", "admin", "--no-password"],
        ["user", "password", "ana", "--password-stdin"],
        ["user", "role", "ana", "admin"],
        ["user", "disable", "bea", "--note", "left the team"],
        ["user", "disable", "bea"],
        ["user", "disable", "ana"],
        ["user", "list"],
        ["user", "enable", "bea"],
        ["token", "list"],
        ["token", "create", "deploy", "--role", "operator", "--days", "30"],
        ["token", "list"],
        ["token", "revoke", "deploy", "--yes", "--note", "was in a log"],
        ["token", "revoke", "deploy", "--yes"],
        ["jobs", "submit", "report", "--queue", "reports", "--key", "monthly-2026-11"],
        ["jobs", "submit", "report", "--queue", "reports", "--key", "monthly-2026-11"],
        ["jobs", "submit", "report", "--payload", "{"],
        ["jobs", "unblock", blocked],
        ["jobs", "unblock", blocked],
        ["config", "show"],
        ["backup", "monday"],
        ["backup", "monday"],
        ["restore", "monday", "--check"],
        ["restore", "monday"],
    ]
