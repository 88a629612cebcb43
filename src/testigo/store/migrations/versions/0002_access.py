"""Who may see and do what, and what they did."""

from testigo.store.migrations import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Run the file beside this one."""
    run("0002_access.sql")
