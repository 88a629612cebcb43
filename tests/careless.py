"""Commands that do not keep the rules of receipts, each in a way of its own, to be caught (spec P-02).

Each is right as long as it is sent once and nothing breaks.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = [
    "another_answer",
    "no_receipt",
    "receipt_first",
    "receipt_that_ignores_another",
    "receipt_that_is_not_looked_up",
    "without_a_transaction",
]

_FOUND = Statement("SELECT 1 FROM testigo.receipt WHERE actor = :actor AND action = :id")
_EFFECT = Statement("INSERT INTO testigo.note (note) VALUES (CAST(gen_random_uuid() AS text))")
_RECEIPT = Statement("INSERT INTO testigo.receipt VALUES (:actor, :id, 'digest', '{}', now())")
_RECEIPT_UNLESS_THERE = Statement(f"{_RECEIPT.sql} ON CONFLICT DO NOTHING")


@single_statement
def without_a_transaction(c: Connection, *, action: Action) -> str:
    """Its effect and its receipt are two statements, each committed by itself."""
    if not _FOUND.rows(c, actor=action.actor, id=action.id):
        _EFFECT.rows(c)
        _RECEIPT.rows(c, actor=action.actor, id=action.id)
    return "done"


@single_statement
def receipt_first(c: Connection, *, action: Action) -> str:
    """Its receipt is there before its effect."""
    if not _FOUND.rows(c, actor=action.actor, id=action.id):
        _RECEIPT.rows(c, actor=action.actor, id=action.id)
        _EFFECT.rows(c)
    return "done"


def receipt_that_ignores_another(c: Connection, *, action: Action) -> str:
    """Its receipt says nothing when an earlier send has filed one meanwhile."""
    if not _FOUND.rows(c, actor=action.actor, id=action.id):
        _EFFECT.rows(c)
        _RECEIPT_UNLESS_THERE.rows(c, actor=action.actor, id=action.id)
    return "done"


def receipt_that_is_not_looked_up(c: Connection, *, action: Action) -> str:
    """What it did before is an error to it."""
    _EFFECT.rows(c)
    _RECEIPT.rows(c, actor=action.actor, id=action.id)
    return "done"


def no_receipt(c: Connection, *, action: Action) -> str:
    """It does the same again."""
    _EFFECT.rows(c)
    return f"done for {action.actor}"


def another_answer(c: Connection, *, action: Action) -> str:
    """It finds its receipt, and tells something else."""
    if _FOUND.rows(c, actor=action.actor, id=action.id):
        return "done before"
    _EFFECT.rows(c)
    _RECEIPT.rows(c, actor=action.actor, id=action.id)
    return "done"
