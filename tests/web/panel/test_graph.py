"""A job's relations are drawn: every box in the picture, none over another, the rest counted."""

from __future__ import annotations

from itertools import combinations

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.read import Lineage, Related
from testigo.rules.states import State
from testigo.web.panel.graph import BOX_HEIGHT, BOX_WIDTH, SHOWN, Drawing, draw

JOB = JobId(new_id())
RELATIONS = ("superseded", "successors", "parents", "children")


def related(count: int, closed: State | None = None) -> tuple[Related, ...]:
    """So many relations."""
    return tuple(Related(JobId(new_id()), State.SUCCEEDED, False, closed=closed) for _ in range(count))


def lineage(counts: dict[str, int], more: frozenset[str] = frozenset()) -> Lineage:
    """A job with so many relations of each kind."""
    return Lineage(JOB, **{name: related(counts.get(name, 0)) for name in RELATIONS}, more=more)


def drawn(found: Lineage) -> Drawing:
    """The drawing, which there must be."""
    drawing = draw(found, State.READY)
    assert drawing is not None
    return drawing


def test_a_job_without_relations_is_not_drawn() -> None:
    """A picture of one box tells nothing."""
    assert draw(lineage({}), State.READY) is None


@pytest.mark.parametrize(
    "counts",
    [{name: 1} for name in RELATIONS]
    + [
        dict.fromkeys(RELATIONS, 1),
        dict.fromkeys(RELATIONS, 9),
        {"parents": 5, "children": 2, "successors": 3},
    ],
)
def test_every_box_is_in_the_picture_and_none_over_another(counts: dict[str, int]) -> None:
    """Whatever a job is related to."""
    drawing = drawn(lineage(counts))
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - BOX_WIDTH
        assert 0 <= box.y <= drawing.height - BOX_HEIGHT
    for one, other in combinations(drawing.boxes, 2):
        assert abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT
    assert len(drawing.lines) == len(drawing.boxes) - 1


@pytest.mark.parametrize("name", RELATIONS)
def test_what_is_not_drawn_is_counted(name: str) -> None:
    """One more than fits is drawn in the place of its count; beyond that the last box counts the rest."""
    assert not any(box.more for box in drawn(lineage({name: SHOWN + 1})).boxes)
    rest = [box for box in drawn(lineage({name: SHOWN + 3})).boxes if box.job_id is None]
    assert [(box.more, box.is_more_at_least) for box in rest] == [(3, False)]


@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_that_goes_on_beyond_what_was_read_says_at_least(name: str) -> None:
    """However few of it are drawn."""
    rest = [box for box in drawn(lineage({name: 7}, frozenset({name}))).boxes if box.job_id is None]
    assert [(box.more, box.is_more_at_least) for box in rest] == [(7 - SHOWN, True)]


def test_an_edge_is_open_while_its_child_waits() -> None:
    """A parent that has ended is drawn as one that nobody waits for."""
    found = Lineage(JOB, (), (), related(1) + related(1, State.SUCCEEDED), ())
    assert [line.is_open for line in drawn(found).lines] == [True, False]


def test_older_jobs_are_left_of_the_job_and_newer_ones_right() -> None:
    """The nearest is the next."""
    found = lineage({"superseded": 2, "successors": 2})
    at = {box.job_id: box.x for box in drawn(found).boxes}
    chain = [*reversed(found.superseded), None, *found.successors]
    places = [at[JOB if each is None else each.job_id] for each in chain]
    assert places == sorted(places)
