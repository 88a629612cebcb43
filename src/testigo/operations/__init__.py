"""One action over many jobs: a selection that is frozen when it is asked for, done in batches, told job by job.

`preview` says what an operation would be for, `begin` freezes it, `advance` does the next of it, in whichever
process and however often it is called; `stop` ends it early. An operation outlives whoever began it.
"""

from __future__ import annotations

from testigo.operations.advance import advance
from testigo.operations.begin import begin, preview
from testigo.operations.model import (
    RIGHT_OF,
    Advanced,
    Item,
    Operation,
    OperationId,
    OperationState,
    Outcome,
    Preview,
    Selection,
    Stopped,
    Verb,
)
from testigo.operations.prune import prune_operations
from testigo.operations.read import items, operation, operations
from testigo.operations.stop import stop

__all__ = [
    "RIGHT_OF",
    "Advanced",
    "Item",
    "Operation",
    "OperationId",
    "OperationState",
    "Outcome",
    "Preview",
    "Selection",
    "Stopped",
    "Verb",
    "advance",
    "begin",
    "items",
    "operation",
    "operations",
    "preview",
    "prune_operations",
    "stop",
]
