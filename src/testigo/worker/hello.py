"""What a runner says of the application that it loaded: data from outside, checked (spec decision 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["PUBLISHED_KINDS", "Hello", "hello_from"]

PUBLISHED_KINDS = frozenset({"testigo.publish"})
"""What a publisher runs: no application can add to it (spec P-30)."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a runner says of the application that it loaded."""

    app: str
    url: str | None
    schema: str | None
    shared: dict[str, str] = field(default_factory=dict)
    """Kinds whose runs share a runner, with their queues."""
    isolated: dict[str, str] = field(default_factory=dict)
    """Kinds of which each run has a runner of its own."""
    published: dict[str, str] = field(default_factory=dict)
    """Kinds that the publisher runs, and no runner."""
    deployment: str | None = None

    @property
    def kinds(self) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """All kinds with their queues: those that share a runner, those that do not, those of the publisher."""
        return self.shared, self.isolated, self.published

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of all kinds, each once, in the order of the kinds."""
        return tuple(dict.fromkeys(queue for kinds in self.kinds for queue in kinds.values()))


def hello_from(message: Any) -> Hello | None:
    """What a runner said of itself, or None for what is no hello."""
    match message:
        case ["hello", {"kinds": dict(kinds), "app": str(app)} as said]:
            pass
        case _:
            return None
    sorts: dict[str, dict[str, str]] = {"shared": {}, "process": {}, "publisher": {}}
    for name, options in kinds.items():
        match options:
            case {"queue": str(queue), "isolation": "process" | "shared" as isolation}:
                sorts[isolation][name] = queue
            case {"queue": str(queue), "isolation": "publisher"} if name in PUBLISHED_KINDS:
                sorts["publisher"][name] = queue
            case _:
                return None
    shared, isolated, published = sorts.values()
    texts = {name: said.get(name) for name in ("url", "schema", "deployment")}
    if any(text is not None and not isinstance(text, str) for text in texts.values()):
        return None
    return Hello(app, texts["url"], texts["schema"], shared, isolated, published, texts["deployment"])
