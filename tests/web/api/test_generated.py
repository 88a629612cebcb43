"""Whatever is generated from the OpenAPI document, fit or unfit, is answered as the document says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testigo.access.roles import Role
from testigo.web.api.openapi import document
from testigo.web.api.routes import routes
from tests.web.api.inhabited import Inhabited, inhabited
from tests.world import World

EXAMPLES = 5
"""Requests of each operation and mode: so many that the whole takes about a minute."""

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

ENDLESS = {"follow_events"}
"""Its answer has no end; it has tests of its own."""


def strategies(operation: Any, named: Mapping[str, Sequence[str]]) -> Iterator[st.SearchStrategy[Any]]:
    """Fit requests, unfit ones, and where something is named fit ones of what there is."""
    yield operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    for name, ids in named.items():
        if f"{{{name}}}" in operation.path:
            yield st.one_of(*(operation.as_strategy(path_parameters={name: each}) for each in ids))
    if list(operation.path_parameters) + list(operation.query) + list(operation.body):
        yield operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR, Role.VIEWER])
def test_every_answer_is_one_that_the_document_tells_of(
    database_url: str, world: World, tmp_path: Path, role: Role
) -> None:
    """No error of ours, no status, type, header or member that is not told of; of everything there is something."""
    with inhabited(database_url, world, tmp_path) as there:
        assert generated(there, role) > 100


def generated(there: Inhabited, role: Role) -> int:
    """Have somebody of this role ask whatever is generated; returns how much that was."""
    authorization = there.site.program(role).headers["authorization"]
    schema = schemathesis.openapi.from_dict(document(routes.router))
    asked = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation: Any = result.ok()
        if operation.definition.raw["operationId"] in ENDLESS:
            continue
        for strategy in strategies(operation, there.named):

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=strategy)
            def ask(case: Any) -> None:
                nonlocal asked
                asked += 1
                answer = case.call(base_url=there.site.url, headers={"Authorization": authorization})
                case.validate_response(answer, checks=CHECKS)

            ask()
    return asked
