"""Breadth-first through every interleaving: the shortest way to a broken promise is the one that is told."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testigo.errors import Error
from tests.simulation.authority import Authority
from tests.simulation.happenings import steps
from tests.simulation.promises import Promises
from tests.simulation.small_world import World

__all__ = ["Broken", "Explored", "explore"]

Event = tuple[object, ...]


class Broken(AssertionError):
    """A promise is broken; the message tells which, and every event that led there."""


@dataclass(frozen=True)
class Explored:
    """How many worlds and steps were seen, and how many events deep; `whole` when there are no others."""

    worlds: int
    steps: int
    depth: int
    whole: bool


def explore(authority: Authority, begin: World, *, grants_max: int, depth_max: int = 1_000) -> Explored:
    """Takes every step from every world that is reached, and holds each against the promises.

    Raises `Broken` for the first that does not keep one, or that a rule refuses.
    """
    promises = Promises(authority)
    came_from: dict[World, tuple[World, Event] | None] = {begin: None}
    frontier, taken, depth = [begin], 0, 0
    with _no_collector():
        while frontier and depth < depth_max:
            reached: list[World] = []
            for world in frontier:
                try:
                    for step in steps(authority, world, grants_max=grants_max):
                        taken += 1
                        for what in promises.broken(world, step):
                            raise Broken(_told(came_from, world, step.what, what))
                        if step.after not in came_from:
                            came_from[step.after] = (world, step.what)
                            reached.append(step.after)
                except Error as refused:
                    raise Broken(
                        _told(came_from, world, ("?",), f"Promise 1: nothing may raise {refused}")
                    ) from refused
            frontier, depth = reached, depth + 1
    return Explored(len(came_from), taken, depth, whole=not frontier)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Worlds are tuples of tuples and hold no circle, but the collector would walk them all, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _told(came_from: dict[World, tuple[World, Event] | None], world: World, last: Event, what: str) -> str:
    path = [last]
    here = came_from[world]
    while here is not None:
        path.append(here[1])
        here = came_from[here[0]]
    events = [f"  {number}. {_sentence(event)}" for number, event in enumerate(reversed(path), 1)]
    jobs = [f"  job {number}: {job}" for number, job in enumerate(world.jobs)]
    return "\n".join([what, *events, "before the last of them:", *jobs])


def _sentence(event: Event) -> str:
    return " ".join(f"job {part}" if isinstance(part, int) else str(part) for part in event)
