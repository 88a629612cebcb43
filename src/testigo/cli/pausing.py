"""Pausing and resuming, of queues and kinds alike."""

from __future__ import annotations

from typing import Literal

from testigo.cli.call import Call

__all__ = ["switch"]


def switch(here: Call, verb: Literal["pause", "resume"], scope: str, name: str, note: str) -> None:
    """Pause or resume, and say whether that changed anything."""
    from testigo.authority.pause import Scope, pause, resume

    with here.database() as db:
        if verb == "pause":
            receipt = db.run(pause, Scope(scope), name, note=note, action=here.action())
        else:
            receipt = db.run(resume, Scope(scope), name, action=here.action())
    now = "paused" if verb == "pause" else "resumed"
    was = f"The {scope} {name} " + (f"is {now}." if receipt.changed else f"was {now} already: nothing changed.")
    if verb == "resume" and not receipt.changed:
        was = f"The {scope} {name} was not paused: nothing changed."
    here.answer({"scope": scope, "name": name, "changed": receipt.changed}, lambda: print(was))
