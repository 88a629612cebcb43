"""What has to be known of a run before its results can be read, wherever in the run it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testigo.errors import EvidenceInvalid
from testigo.evidence.reported import Trouble, Unread
from testigo.evidence.sarif.loose import child, items, text
from testigo.evidence.sarif.places import Places
from testigo.evidence.sarif.rules import Component, Rules
from testigo.evidence.streaming import Walk

__all__ = ["Head", "heads"]

RUNS_MAX = 1_000
KEPT_MAX = 200_000
"""The most rules, names of files and notifications that are kept of one report."""

VERSION = "2.1.0"


@dataclass(slots=True)
class Head:
    """A run without its results: its rules, its places, and what it says that it could not do."""

    rules: Rules
    places: Places
    unread: list[Unread | Trouble] = field(default_factory=list)
    failed: str | None = None
    levels: list[dict[str, str]] = field(default_factory=list)
    """Of each invocation, the levels that it was configured to give to rules, by their ids."""

    @property
    def kept(self) -> int:
        """How many things of the run are held in memory."""
        components = (self.rules.driver, *self.rules.extensions)
        levels = sum(map(len, self.levels))
        return sum(len(each.rules) for each in components) + len(self.places.artifacts) + len(self.unread) + levels


def heads(walk: Walk, roots: tuple[str, ...]) -> list[Head]:
    """The heads of all runs of the report, of which `walk` goes through the whole text.

    Raises EvidenceInvalid for a text that is not a SARIF log of version 2.1.0 or keeps more than
    1,000 runs or 200,000 rules, files and notifications.
    """
    found: list[Head] = []
    version = runs = None
    for name in walk.members():
        match name:
            case "version":
                version = text(walk.value())
                if version != VERSION:
                    raise walk.refused(f"SARIF of version {version!r} is not read", limit=VERSION)
            case "runs":
                runs = True
                for index in walk.elements():
                    if index == RUNS_MAX:
                        raise walk.refused("the report has too many runs", limit=f"{RUNS_MAX} runs")
                    found.append(_head(walk, roots, KEPT_MAX - sum(each.kept for each in found)))
    if version is None or runs is None:
        raise walk.refused(
            f"a SARIF log has the members version and runs; {'version' if version is None else 'runs'} is missing"
        )
    walk.finish()
    return found


def _head(walk: Walk, roots: tuple[str, ...], room: int) -> Head:
    head = Head(Rules(), Places(roots))
    invocations: list[Any] = []
    for name in walk.members():
        match name:
            case "tool":
                _tool(walk, head.rules)
            case "artifacts":
                for index in walk.elements():
                    if index == KEPT_MAX:
                        raise _too_much(walk)
                    head.places.artifacts.append(_artifact(walk))
            case "originalUriBaseIds":
                head.places.declare(walk.value())
            case "invocations":
                invocations = [_invocation(walk) for index in walk.elements() if index < RUNS_MAX]
        if head.kept > room:
            raise _too_much(walk)
    head.rules.index()
    for invocation in invocations:
        _note(invocation, head)
    return head


def _too_much(walk: Walk) -> EvidenceInvalid:
    return walk.refused("the report declares too much", limit=f"{KEPT_MAX} rules, artifacts and notifications")


def _tool(walk: Walk, rules: Rules) -> None:
    for name in walk.members():
        match name:
            case "driver":
                rules.driver = Component.read(walk)
            case "extensions":
                rules.extensions = [Component.read(walk) for _ in walk.elements()]


def _artifact(walk: Walk) -> tuple[str | None, str | None]:
    """The URI and the base id of an artifact, of which nothing else is built, its contents least of all."""
    location: Mapping[str, Any] = {}
    for name in walk.members():
        if name == "location":
            location = child({name: walk.value()}, name)
    return text(location.get("uri")), text(location.get("uriBaseId"))


def _invocation(walk: Walk) -> dict[str, Any]:
    kept = {
        "executionSuccessful",
        "exitCodeDescription",
        "toolExecutionNotifications",
        "toolConfigurationNotifications",
        "ruleConfigurationOverrides",
    }
    return {name: walk.value() for name in walk.members() if name in kept}


def _note(invocation: Mapping[str, Any], head: Head) -> None:
    """Take over what an invocation says of rules, and of its failures: of files where it names them, else of all."""
    head.levels.append(_levels(invocation, head.rules))
    if invocation.get("executionSuccessful") is False:
        head.failed = text(invocation.get("exitCodeDescription")) or "the tool says that its run was not successful"
    notifications = [
        each
        for member in ("toolExecutionNotifications", "toolConfigurationNotifications")
        for each in items(invocation.get(member))
        if isinstance(each, dict) and each.get("level") == "error"
    ]
    for notification in notifications:
        reason = text(child(notification, "message").get("text")) or "the tool reported an error"
        locations = items(notification.get("locations"))
        if not locations:
            head.unread.append(Trouble(reason))
        for location in locations:
            physical = child({"it": location}, "it")
            artifact = child(child(physical, "physicalLocation"), "artifactLocation")
            try:
                path = head.places.of(artifact).path
            except EvidenceInvalid:  # a place outside the tree has no part in the coverage of the tree
                continue
            head.unread.append(Trouble(reason) if path is None else Unread(path, reason, failed=True))


def _levels(invocation: Mapping[str, Any], rules: Rules) -> dict[str, str]:
    found: dict[str, str] = {}
    for override in items(invocation.get("ruleConfigurationOverrides"))[:KEPT_MAX]:
        each = child({"it": override}, "it")
        rule_id, rule = rules.of({"rule": child(each, "descriptor")})
        level = text(child(each, "configuration").get("level"))
        if level is not None:
            found[rule_id if rule is None else rule.id] = level
    return found
