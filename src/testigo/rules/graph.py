"""A job's parents: what becomes of it by them; in a batch each must exist, and none may wait for itself (spec P-25)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

__all__ = ["Policy", "cycle", "outside"]


class Policy(StrEnum):
    """What becomes of a child whose parent can never succeed (spec A-08)."""

    FAIL = "fail"
    CANCEL = "cancel"
    WAIT = "wait"
    """For a successor of that parent."""
    RUN = "run"
    """When all parents have ended, whatever became of them: the child looks at what they left."""


def cycle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle among jobs of one batch, as the ids along it; None when there is none.

    Only jobs of one batch can form one: any other parent existed before its child.
    """
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def outside(parents: Mapping[str, Sequence[str]]) -> set[str]:
    """The parents that are not of the batch itself, so that they must exist already."""
    return {parent for of_one in parents.values() for parent in of_one} - set(parents)
