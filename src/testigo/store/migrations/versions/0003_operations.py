"""What one person does to many jobs."""

from testigo.store.migrations import run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Run the file beside this one."""
    run("0003_operations.sql")
