"""The desk: those who wait for it take turns."""

from __future__ import annotations

import threading

from testigo.worker.desk import Desk, Task
from tests.world import World


def test_who_asks_much_at_once_keeps_nobody_else_waiting(world: World) -> None:
    """The tasks of each are done in their order; between two of one, all others have a turn."""
    began, go, over = threading.Event(), threading.Event(), threading.Event()
    done: list[str] = []

    def first(_: object) -> None:
        began.set()
        go.wait()

    def says(word: str) -> Task:
        return lambda _: done.append(word)

    desk = Desk(world.db, 1, leaving=threading.Event())
    desk.start()
    desk.put(first)
    began.wait()
    for word in ("a1", "a2", "a3", "b1", "b2"):
        desk.put(says(word), of=word[0])
    desk.put(says("keeper"))
    desk.put(lambda _: over.set(), of="a")
    go.set()
    assert over.wait(90)
    assert done == ["a1", "b1", "keeper", "a2", "b2", "a3"]
