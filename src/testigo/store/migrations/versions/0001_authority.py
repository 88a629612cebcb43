"""The authority's tables."""

from testigo.store.migrations import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the file beside this one."""
    run("0001_authority.sql")
