"""Whether a document is CycloneDX of the version that it says (cyclonedx-python-lib)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from cyclonedx.exception import MissingOptionalDependencyException
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from testigo.errors import EvidenceInvalid, NotFound

__all__ = ["VERSIONS", "must_be_valid"]

VERSIONS = {version.to_version(): version for version in SchemaVersion if version >= SchemaVersion.V1_2}
"""Those that are written as JSON."""

_SAME = frozenset({"anyOf", "oneOf", "allOf", "items"})
"""What says more of a list that has its name already."""
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|\\^`\x7f-\x9f]|%(?![0-9A-Fa-f]{2})")


def must_be_valid(document: Any, version: str, *, name: str) -> None:
    """Refuse what the strict schema of that version refuses: unknown members, too.

    Raises EvidenceInvalid with the place and the rule that was broken, never with what stands there.
    """
    validator = _Validator(VERSIONS[version])
    try:
        found = validator.validate_str(json.dumps(document))
    except MissingOptionalDependencyException as error:
        raise NotFound(
            "The schemas of CycloneDX are not installed.", remedy="Install: pip install 'testigo[evidence]'."
        ) from error
    if found is not None:
        raise _refused([*found.data.absolute_path], str(found.data.validator), version, name)
    if repeated := _repeated(document, validator.unique, []):
        raise _refused(repeated, "uniqueItems", version, name)


class _Validator(JsonStrictValidator):
    """The library's own, without two checks that it makes by comparing everything with everything else.

    One reference takes its parser a tenth of a second, and lists whose entries must differ take it
    the square of their length. Both are checked here instead: `unique` are the names of such lists.
    """

    unique: frozenset[str] = frozenset()

    @property
    def _validator(self) -> Any:
        validator = super()._validator
        self.unique |= _taken_out(validator.schema, "")
        slow = validator.format_checker
        quick = type(slow)(set(slow.checkers) - {"iri", "iri-reference"})
        quick.checks("iri-reference")(_is_reference)
        return validator.evolve(format_checker=quick)


def _is_reference(value: object) -> bool:
    return not isinstance(value, str) or _NOT_IN_IRI.search(value) is None


def _taken_out(schema: Any, name: str) -> set[str]:
    """The names of all lists in `schema` whose entries must differ, which it says no longer."""
    if isinstance(schema, list):
        return set().union(*(_taken_out(each, name) for each in schema))
    if not isinstance(schema, dict):
        return set()
    found = {name} if schema.pop("uniqueItems", None) is True else set()
    return found.union(*(_taken_out(each, name if at in _SAME else at) for at, each in schema.items()))


def _repeated(value: Any, unique: frozenset[str], place: list[Any]) -> list[Any] | None:
    """The place of an entry that is in its list twice though they must differ; None if there is none."""
    if isinstance(value, dict):
        below: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        below = enumerate(value)
        if next((each for each in reversed(place) if isinstance(each, str)), None) in unique:
            seen: set[str] = set()
            for at, each in enumerate(value):
                text = json.dumps(each, sort_keys=True)
                if text in seen:
                    return [*place, at]
                seen.add(text)
    else:
        return None
    for at, each in below:
        if isinstance(each, dict | list) and (found := _repeated(each, unique, [*place, at])):
            return found
    return None


def _refused(place: list[Any], rule: str, version: str, name: str) -> EvidenceInvalid:
    pointer = "".join(f"/{each}" for each in place)[:1000]
    return EvidenceInvalid(
        f"{name}, at {pointer or '/'}: it is not as CycloneDX {version} has it ({rule})",
        field=pointer or None,
        file=name,
    )
