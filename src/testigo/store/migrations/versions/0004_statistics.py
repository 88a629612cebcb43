"""What happened, rolled up."""

from testigo.store.migrations import run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Run the file beside this one."""
    run("0004_statistics.sql")
