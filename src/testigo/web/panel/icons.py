"""The panel's small drawings, and which of them stands for which state: a state is icon, word and colour (panel.md).

They are constants of this file, drawn on a grid of 16 in the colour of the text around them.
"""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

__all__ = ["STATES", "icon"]

_FRAME = Markup('<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{}</svg>')

_SHAPES: Mapping[str, Markup] = {
    "clock": Markup('<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.5"/>'),
    "link": Markup('<circle cx="4" cy="8" r="2.5"/><circle cx="12" cy="8" r="2.5"/><path d="M6.5 8h3"/>'),
    "ring": Markup('<circle cx="8" cy="8" r="5"/>'),
    "held": Markup('<circle cx="8" cy="8" r="5.5"/><circle cx="8" cy="8" r="2" fill="currentColor"/>'),
    "play": Markup('<path fill="currentColor" d="M5 3.2v9.6L12.6 8z"/>'),
    "diamond": Markup('<path fill="currentColor" d="M8 2.5 13.5 8 8 13.5 2.5 8z"/>'),
    "again": Markup('<path d="M13 8a5 5 0 1 1-1.5-3.6L13 6"/><path d="M13 2.8V6H9.8"/>'),
    "hand": Markup('<path d="M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5z"/><path d="M5.5 8h5"/>'),
    "stopping": Markup('<circle cx="8" cy="8" r="6"/><path fill="currentColor" d="M5.8 5.8h4.4v4.4H5.8z"/>'),
    "check": Markup('<path d="m3 8.5 3.2 3.2L13 4.8"/>'),
    "partly": Markup('<path d="m2 9 2.8 2.8L10 6.5"/><path d="M13 3.5v4M13 10.2v.4"/>'),
    "cross": Markup('<path d="m4 4 8 8M12 4l-8 8"/>'),
    "off": Markup('<circle cx="8" cy="8" r="5.5"/><path d="m4.2 11.8 7.6-7.6"/>'),
    "replaced": Markup('<path d="m3.5 4 4 4-4 4M8.5 4l4 4-4 4"/>'),
    "pause": Markup('<path d="M5.5 3.5v9M10.5 3.5v9"/>'),
    "warning": Markup('<path d="M8 2.2 14.4 13.5H1.6z"/><path d="M8 6.5v3M8 11.6v.3"/>'),
    "person": Markup('<circle cx="8" cy="5.2" r="2.7"/><path d="M2.8 14c.6-3 2.6-4.4 5.2-4.4s4.6 1.4 5.2 4.4"/>'),
    "menu": Markup('<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>'),
    "dot": Markup('<circle cx="8" cy="8" r="4" fill="currentColor"/>'),
    "search": Markup('<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>'),
    "right": Markup('<path d="m6 4 4 4-4 4"/>'),
    "down": Markup('<path d="m4 6 4 4 4-4"/>'),
}

STATES: Mapping[str, tuple[str, str]] = {
    "created": ("clock", "quiet"),
    "inputs_pending": ("link", "quiet"),
    "ready": ("ring", "quiet"),
    "leased": ("held", "run"),
    "running": ("play", "run"),
    "checkpointed": ("diamond", "quiet"),
    "retry_waiting": ("again", "warn"),
    "blocked_by_quality": ("hand", "warn"),
    "cancelling": ("stopping", "warn"),
    "succeeded": ("check", "ok"),
    "succeeded_degraded": ("partly", "warn"),
    "permanent_failure": ("cross", "bad"),
    "cancelled": ("off", "quiet"),
    "superseded": ("replaced", "quiet"),
    "open": ("dot", "ok"),
    "draining": ("stopping", "warn"),
    "closed": ("off", "quiet"),
    "replaced": ("replaced", "quiet"),
    "dead": ("cross", "bad"),
    "paused": ("pause", "warn"),
    "late": ("warning", "warn"),
    "ok": ("dot", "ok"),
    "unserved": ("warning", "bad"),
}
"""For each state of a job, a session or a queue: its icon, and its tone, which is a class of the style."""


def icon(name: str) -> Markup:
    """The drawing of this name, hidden from whoever has the page read out: the word beside it says the same."""
    return _FRAME.format(_SHAPES[name])
