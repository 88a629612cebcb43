"""What analysers found, and what people decided about it."""

from testigo.store.migrations import run

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Run the file beside this one."""
    run("0005_evidence.sql")
