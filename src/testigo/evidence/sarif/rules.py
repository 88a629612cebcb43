"""The rules that a run's tool declares, in its driver and its extensions, and which of them a result means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testigo.evidence.sarif.loose import child, items, text, whole
from testigo.evidence.streaming import Walk
from testigo.rules.evidence.sealing import UNNAMED

__all__ = ["Component", "Rule", "Rules"]

STRINGS_MAX = 32
"""The most message strings that are kept of one rule, and of one component."""
TAGS_MAX = 16


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule says of its results: a name, a level unless it says none, its properties, its words."""

    id: str
    name: str | None = None
    level: str | None = None
    help_uri: str | None = None
    described: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    strings: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Component:
    """The tool's driver or one of its extensions."""

    name: str | None = None
    guid: str | None = None
    version: str | None = None
    rules: list[Rule] = field(default_factory=list)
    strings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, walk: Walk) -> Component:
        """The component that the walk stands at."""
        found = cls()
        versions: dict[str, str | None] = {}
        for name in walk.members():
            match name:
                case "name":
                    found.name = text(walk.value())
                case "guid":
                    found.guid = text(walk.value())
                case "version" | "semanticVersion":
                    versions[name] = text(walk.value())
                case "rules":
                    found.rules = [_rule(walk) for _ in walk.elements()]
                case "globalMessageStrings":
                    found.strings = _strings(walk.value())
        found.version = versions.get("version") or versions.get("semanticVersion")
        return found


@dataclass(slots=True)
class Rules:
    """All components of a run: the driver first."""

    driver: Component = field(default_factory=Component)
    extensions: list[Component] = field(default_factory=list)
    _by_id: dict[str, Rule] = field(default_factory=dict)

    def index(self) -> None:
        """Make rules findable by id; the first of one id counts, the driver's before the extensions'."""
        for component in (self.driver, *self.extensions):
            for rule in component.rules:
                self._by_id.setdefault(rule.id, rule)

    def of(self, result: Mapping[str, Any]) -> tuple[str, Rule | None]:
        """The id of the rule that `result` names, and the rule if it is declared.

        An index counts where it is in range and does not contradict the id; an id may be more
        specific than its rule's (`CA1000/2`). A result that names none is of the rule `unnamed`.
        """
        reference = child(result, "rule")
        rule_id = text(result.get("ruleId")) or text(reference.get("id"))
        number = whole(result.get("ruleIndex"))
        if number is None:
            number = whole(reference.get("index"))
        component = self._component(child(reference, "toolComponent"))
        if number is not None and component is not None and 0 <= number < len(component.rules):
            rule = component.rules[number]
            if rule_id is None or rule_id == rule.id or rule_id.startswith(f"{rule.id}/"):
                return rule_id or rule.id, rule
        if rule_id is None:
            return UNNAMED, None
        found = rule_id
        while found not in self._by_id and "/" in found:
            found = found.rpartition("/")[0]
        return rule_id, self._by_id.get(found)

    def _component(self, reference: Mapping[str, Any]) -> Component | None:
        """The component that is referred to; the driver where there is no reference, None where it leads nowhere."""
        number = whole(reference.get("index"))
        if number is not None:
            return self.extensions[number] if 0 <= number < len(self.extensions) else None
        guid, name = text(reference.get("guid")), text(reference.get("name"))
        every = (self.driver, *self.extensions)
        if guid is not None:
            return next((each for each in every if each.guid == guid), None)
        return self.driver if name is None else next((each for each in every if each.name == name), None)


def _rule(walk: Walk) -> Rule:
    found = {}
    for name in walk.members():
        if name in _KEPT:
            found[name] = walk.value()
    rule_id = text(found.get("id"))
    if rule_id is None:
        raise walk.refused("the rule has no id")
    described = child(found, "shortDescription") or child(found, "fullDescription")
    return Rule(
        rule_id,
        name=text(found.get("name")),
        level=text(child(found, "defaultConfiguration").get("level")),
        help_uri=text(found.get("helpUri")),
        described=text(described.get("text")),
        properties=_properties(child(found, "properties")),
        strings=_strings(found.get("messageStrings")),
    )


_KEPT = frozenset(
    {
        "id",
        "name",
        "defaultConfiguration",
        "helpUri",
        "shortDescription",
        "fullDescription",
        "properties",
        "messageStrings",
    }
)
_PROPERTIES = ("security-severity", "problem.severity", "severity", "precision", "cwe")


def _properties(found: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: found[name] for name in _PROPERTIES if isinstance(found.get(name), str | int | float)}
    tags = [tag for tag in items(found.get("tags")) if isinstance(tag, str)][:TAGS_MAX]
    return {**kept, "tags": ", ".join(tags)} if tags else kept


def _strings(found: object) -> dict[str, str]:
    """Message strings by their ids."""
    if not isinstance(found, dict):
        return {}
    texts = {name: text(child(found, name).get("text")) for name in list(found)[:STRINGS_MAX]}
    return {name: said for name, said in texts.items() if said is not None}
