"""The parents of a batch: no job waits for itself, and what is named from outside is found."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.rules.graph import cycle, outside

jobs = st.sampled_from("abcdef")
batches = st.dictionaries(jobs, st.lists(jobs, max_size=4), max_size=6)


def reached(parents: dict[str, list[str]], start: str) -> set[str]:
    """Every job that `start` waits for, directly or through others; found by walking, however long it takes."""
    found: set[str] = set()
    near = list(parents.get(start, ()))
    while near:
        job = near.pop()
        if job not in found:
            found.add(job)
            near.extend(parents.get(job, ()))
    return found


@given(batches)
def test_a_cycle_is_found_just_where_a_job_waits_for_itself(parents: dict[str, list[str]]) -> None:
    """A batch is refused if and only if some job of it would wait for itself, over any number of others, and what
    is named leads from parent to child and back (spec A-08, P-25)."""
    found = cycle(parents)
    assert (found is not None) == any(job in reached(parents, job) for job in parents)
    if found is not None:
        assert found[0] == found[-1]
        assert all(parent in parents[child] for parent, child in pairwise(found))


@pytest.mark.parametrize(
    "parents",
    [
        {"a": ["a"]},
        {"a": ["b"], "b": ["a"]},
        {"a": ["b", "x"], "b": ["c"], "c": ["d"], "d": ["b"]},
    ],
)
def test_the_shortest_and_longer_cycles_are_found(parents: dict[str, list[str]]) -> None:
    """A job that names itself, two that name each other, and a ring behind a tail (spec A-08)."""
    assert cycle(parents) is not None


def test_a_deep_chain_and_a_wide_diamond_are_no_cycles() -> None:
    """A thousand generations, a parent named twice and two ways to one ancestor are all allowed (spec P-25)."""
    assert cycle({str(n): [str(n - 1)] for n in range(1, 1000)}) is None
    assert cycle({"a": ["b", "c", "b"], "b": ["d"], "c": ["d"]}) is None
    assert cycle({}) is None


@given(batches)
def test_what_is_not_of_the_batch_must_exist_already(parents: dict[str, list[str]]) -> None:
    """Exactly the parents that no row of the batch submits are looked up (spec A-08, P-11)."""
    assert outside(parents) == {
        parent for waits_for in parents.values() for parent in waits_for if parent not in parents
    }
