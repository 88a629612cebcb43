"""The OpenAPI document is whole: each operation is described, its examples are true, no reference leads nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from testigo.access.audit import AuditView
from testigo.authority.read import Cause, Filter, JobSummary, JobView, QueueView, SessionView
from testigo.authority.read.kinds import KindView
from testigo.evidence.model import AnalysisView, ArtifactView, Exempted, FindingView, Gate, PartView, ProjectView
from testigo.operations import Operation
from testigo.rules.evidence.finding import Finding
from testigo.statistics import Totals
from testigo.web.api.analyses import AnalysisShape, GateShape, PartShape
from testigo.web.api.artifacts import ArtifactShape
from testigo.web.api.audit import AuditRowShape
from testigo.web.api.filters import FilterShape
from testigo.web.api.found import FindingShape
from testigo.web.api.jobs.shown import JobShape, JobSummaryShape
from testigo.web.api.kinds import KindShape
from testigo.web.api.openapi import document
from testigo.web.api.operations import OperationShape
from testigo.web.api.overview import CauseShape
from testigo.web.api.projects import ExemptionShape, ProjectShape
from testigo.web.api.queues import QueueShape
from testigo.web.api.routes import routes
from testigo.web.api.shapes import Shape
from testigo.web.api.statistics import TotalsShape
from testigo.web.api.workers import WorkerShape

DOCUMENT = document(routes.router)
OPERATIONS = {
    told["operationId"]: (method, path, told)
    for path, methods in DOCUMENT["paths"].items()
    for method, told in methods.items()
}


def nested(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document."""
    if isinstance(value, list):
        for each in value:
            yield from nested(each)
    elif isinstance(value, dict):
        yield value
        for each in value.values():
            yield from nested(each)


def check(schema: dict[str, Any], example: object) -> None:
    """The example is what the schema says."""
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(example)


def test_it_is_of_the_version_that_knows_json_schema() -> None:
    """OpenAPI 3.1, with the two ways to be known."""
    assert DOCUMENT["openapi"].startswith("3.1")
    assert set(DOCUMENT["components"]["securitySchemes"]) == {"token", "login"}
    assert DOCUMENT["security"] == [{"token": []}, {"login": []}]


def test_every_reference_leads_to_a_schema_that_is_used() -> None:
    """Nothing is named that is not there, and nothing is there that nobody names."""
    named = {each["$ref"].rpartition("/")[2] for each in nested(DOCUMENT) if isinstance(each.get("$ref"), str)}
    assert named == set(DOCUMENT["components"]["schemas"])


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_described_with_examples_that_are_true(name: str) -> None:
    """Summary, description, an example of what is asked and answered, and the problems by status."""
    _, path, told = OPERATIONS[name]
    assert told["summary"] != told["description"]
    assert told["description"].endswith(".")
    assert len(told["tags"]) == 1
    for parameter in told.get("parameters", ()):
        assert parameter.get("description"), (name, parameter["name"])
    good = {status: answer for status, answer in told["responses"].items() if status.startswith("2")}
    for answer in good.values():
        assert answer["description"] != "Successful Response"
        for content in answer["content"].values():
            assert "example" in content, name
            check(content.get("schema", {}), content["example"])
    if "requestBody" in told:
        (content,) = told["requestBody"]["content"].values()
        check(content["schema"], content["example"])
    for status in set(told["responses"]) - set(good):
        content = told["responses"][status]["content"]["application/problem+json"]
        for example in content["examples"].values():
            assert str(example["value"]["status"]) == status
            check(content["schema"], example["value"])
    assert {"401", "403", "422", "429", "503"} <= set(told["responses"]) or "health" in path


def test_every_schema_says_what_it_is() -> None:
    """And no schema is named after a module of ours."""
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert "__" not in name
        assert not name.endswith("_")
        assert schema.get("description"), name


@pytest.mark.parametrize(
    ("shape", "view", "without"),
    [
        (JobSummaryShape, JobSummary, set()),
        (JobShape, JobView, {"documents"}),
        (QueueShape, QueueView, set()),
        (KindShape, KindView, set()),
        (WorkerShape, SessionView, set()),
        (OperationShape, Operation, {"wanted", "replayed"}),
        (AuditRowShape, AuditView, set()),
        (FilterShape, Filter, {"ids", "states", "payload"}),
        (CauseShape, Cause, set()),
        (TotalsShape, Totals, set()),
        (ProjectShape, ProjectView, set()),
        (AnalysisShape, AnalysisView, set()),
        (PartShape, PartView, set()),
        (GateShape, Gate, set()),
        (FindingShape, FindingView, {"finding", "review"}),
        (FindingShape, Finding, set()),
        (ExemptionShape, Exempted, {"identity"}),
        (ArtifactShape, ArtifactView, set()),
    ],
)
def test_a_shape_has_all_that_its_view_has(shape: type[Shape], view: type[Any], without: set[str]) -> None:
    """What a reading learns to tell is told by the API as well, or left out on purpose."""
    names = set(getattr(view, "__dataclass_fields__", getattr(view, "_fields", ())))
    assert names - without <= set(shape.model_fields)
