"""Whatever is generated from the OpenAPI document, fit or unfit, is answered as the document says."""

from __future__ import annotations

from collections.abc import Iterator
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
from testigo.rules.outcomes import Block, Fail
from testigo.settings import Web
from testigo.web.api.openapi import document
from testigo.web.api.routes import routes
from tests.web.api.asking import submitted
from tests.web.conftest import Site, served
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


@pytest.fixture
def unlimited(database_url: str, world: World) -> Iterator[Site]:
    """A site that answers as fast as it is asked."""
    with served(database_url, world, Web(requests_per_second=1e6, requests_burst=10**6)) as site:
        yield site


def told(site: Site) -> list[str]:
    """The ids of jobs in several states."""
    operator = site.program(Role.OPERATOR)
    jobs = [submitted(operator, queue=queue) for queue in ("a", "b", "c", "d")]
    for queue, outcome in (("a", Fail("E", "m", permanent=True)), ("b", Block("r", "n")), ("c", Fail("E", "m"))):
        worker = site.world.worker(queues=[queue])
        worker.settle((worker.take(), outcome))
    return jobs


def strategies(operation: Any, jobs: list[str]) -> Iterator[st.SearchStrategy[Any]]:
    """Fit requests, unfit ones, and where a job is named fit ones of jobs that there are."""
    yield operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if "{job_id}" in operation.path:
        named = [operation.as_strategy(path_parameters={"job_id": job_id}) for job_id in jobs]
        yield st.one_of(*named)
    if list(operation.path_parameters) + list(operation.query) + list(operation.body):
        yield operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
def test_every_answer_is_one_that_the_document_tells_of(unlimited: Site, role: Role) -> None:
    """No error of ours, no status, type, header or member that is not told of."""
    jobs = told(unlimited)
    authorization = unlimited.program(role).headers["authorization"]
    schema = schemathesis.openapi.from_dict(document(routes.router))
    asked = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation: Any = result.ok()
        if operation.definition.raw["operationId"] in ENDLESS:
            continue
        for strategy in strategies(operation, jobs):

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
                answer = case.call(base_url=unlimited.url, headers={"Authorization": authorization})
                case.validate_response(answer, checks=CHECKS)

            ask()
    assert asked > 100
