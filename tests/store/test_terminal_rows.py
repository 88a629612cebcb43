"""What has ended does not change: the database itself refuses it, whoever asks."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from testigo.rules.states import TERMINAL, State
from testigo.store.failures import sqlstate_of
from tests.world import World


@pytest.mark.parametrize("state", State)
def test_a_row_changes_unless_its_state_is_terminal(world: World, state: State) -> None:
    """The trigger's list of states is that of the rules: no ended row takes a change of any column (spec P-26)."""
    (job,) = world.submit()
    moved = "UPDATE testigo.job SET state = CAST(:state AS testigo.job_state) WHERE id = CAST(:id AS uuid) RETURNING 1"
    world.query(moved, state=str(state), id=job)
    columns = [row.name for row in world.query(_COLUMNS)]
    assert len(columns) > 40
    for column in columns:
        change = f"UPDATE testigo.job SET {column} = {column} WHERE id = CAST(:id AS uuid) RETURNING 1"
        if state in TERMINAL:
            with pytest.raises(DBAPIError, match="does not change") as refused:
                world.query(change, id=job)
            assert sqlstate_of(refused.value) == "TG001"
        else:
            assert len(world.query(change, id=job)) == 1


_COLUMNS = """
    SELECT attname AS name FROM pg_attribute
    WHERE attrelid = CAST('testigo.job' AS regclass) AND attnum > 0 AND NOT attisdropped
"""
