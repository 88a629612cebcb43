"""What a SARIF report leaves out is replaced by a stated default, and never ends the reader (field cases R78, R88)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testigo.evidence.reported import Trouble, Unread
from testigo.rules.evidence.sealing import Draft, sealed
from tests.evidence.reports import drafts, readings, refusal, result, run, sarif, written


def one(folder: Path, found: dict[str, Any], **members: Any) -> Draft:
    """The single result of a report with one."""
    [draft] = drafts(written(folder, sarif(run(found, **members))))
    return draft


@pytest.mark.parametrize(
    "log",
    [
        sarif(),
        {"runs": [], "version": "2.1.0"},
        sarif({}),
        sarif({"tool": {}}),
        sarif({"tool": {"driver": {"name": "x"}}, "results": None}),
        sarif(run()),
        sarif(run(), run(rules=[]), {"results": []}),
        {"version": "2.1.0", "runs": None},
    ],
)
def test_a_report_of_nothing_is_a_report(tmp_path: Path, log: object) -> None:
    """No runs, no tool, no rules and no results are read as no findings (field case R88)."""
    assert readings(written(tmp_path, log)) == []


@pytest.mark.parametrize(
    ("members", "rules", "severity", "level"),
    [
        ({}, None, "medium", "warning"),
        ({"level": "error"}, None, "high", "error"),
        ({"level": "NOTE"}, None, "low", "note"),
        ({"level": "MEDIUM"}, None, "medium", "warning"),
        ({"level": "Critical"}, None, "critical", "error"),
        ({"level": 7}, None, "medium", "warning"),
        ({"kind": "review"}, None, "info", "none"),
        ({}, [{"id": "R1", "defaultConfiguration": {"level": "note"}}], "low", "note"),
        ({}, [{"id": "R1", "properties": {"security-severity": "9.8"}}], "critical", "warning"),
        ({"properties": {"security-severity": 7.5}}, [{"id": "R1"}], "high", "warning"),
        ({"level": "error", "properties": {"severity": "LOW"}}, None, "low", "error"),
        ({"properties": {"security-severity": "none at all"}}, None, "medium", "warning"),
    ],
)
def test_severity_and_level_have_defaults(
    tmp_path: Path, members: dict[str, Any], rules: list[dict[str, Any]] | None, severity: str, level: str
) -> None:
    """The number counts before the word, and the word before the level, which else is a warning (field case R78)."""
    draft = one(tmp_path, result(**members), rules=rules)
    assert (draft.severity, draft.level) == (severity, level)


@pytest.mark.parametrize(
    ("members", "rule", "name"),
    [
        ({"ruleId": "R2"}, "R2", "second"),
        ({"ruleId": None, "ruleIndex": 1}, "R2", "second"),
        ({"ruleId": "R2", "ruleIndex": 99}, "R2", "second"),
        ({"ruleId": "R2", "ruleIndex": -1}, "R2", "second"),
        ({"ruleId": "R2", "ruleIndex": 0}, "R2", "second"),
        ({"ruleId": "R2/special", "ruleIndex": 1}, "R2/special", "second"),
        ({"ruleId": "R2/special"}, "R2/special", "second"),
        ({"ruleId": None, "rule": {"id": "E1"}}, "E1", "extended"),
        ({"ruleId": None, "rule": {"index": 0, "toolComponent": {"index": 0}}}, "E1", "extended"),
        ({"ruleId": None, "rule": {"index": 0, "toolComponent": {"name": "plug"}}}, "E1", "extended"),
        ({"ruleId": None, "rule": {"index": 0, "toolComponent": {"index": 5}}}, "unnamed", None),
        ({"ruleId": "elsewhere"}, "elsewhere", None),
        ({"ruleId": None}, "unnamed", None),
        ({"ruleId": 17, "ruleIndex": "1"}, "unnamed", None),
    ],
)
def test_rules_are_found_through_ids_indices_and_extensions(
    tmp_path: Path, members: dict[str, Any], rule: str, name: str | None
) -> None:
    """A rule is the one that index and id agree on; where the index is out of range, the id counts (field case R78)."""
    driver = {"name": "tool", "rules": [{"id": "R1", "name": "first"}, {"id": "R2", "name": "second"}]}
    tool = {"driver": driver, "extensions": [{"name": "plug", "rules": [{"id": "E1", "name": "extended"}]}]}
    draft = one(tmp_path, result(**members), tool=tool)
    assert (draft.rule, draft.rule_name) == (rule, name)


def test_rules_may_stand_behind_the_results(tmp_path: Path) -> None:
    """The order of a run's members says nothing; some tools write results first."""
    log = sarif({"results": [result(ruleId=None, ruleIndex=0)], "tool": {"driver": {"rules": [{"id": "late"}]}}})
    assert [draft.rule for draft in drafts(written(tmp_path, log))] == ["late"]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"text": "plain"}, "plain"),
        ({"text": "a {0} of {1}, {7}", "arguments": ["part", 3]}, "a part of 3, {7}"),
        ({"id": "m"}, "kept 1"),
        ({"id": "g"}, "global"),
        ({"id": "missing"}, "described"),
        ({"markdown": "*m*"}, "*m*"),
        ({}, "described"),
        (None, "described"),
        ("text", "described"),
    ],
)
def test_a_message_is_found_or_replaced(tmp_path: Path, message: Any, says: str) -> None:
    """The text, else the rule's string, else the tool's, else the rule's description."""
    rule = {"id": "R1", "messageStrings": {"m": {"text": "kept 1"}}, "shortDescription": {"text": "described"}}
    tool = {"driver": {"name": "t", "rules": [rule], "globalMessageStrings": {"g": {"text": "global"}}}}
    assert one(tmp_path, result(message=message), tool=tool).message == says


@pytest.mark.parametrize(
    "locations",
    [
        None,
        [],
        [{}],
        [None],
        [7],
        {},
        [{"physicalLocation": {}}],
        [{"physicalLocation": {"artifactLocation": {"index": 9}}}],
    ],
)
def test_a_place_may_be_missing(tmp_path: Path, locations: Any) -> None:
    """A result without a place is a finding without a path; `{}` for an array alone is refused."""
    path = written(tmp_path, sarif(run(result(None, locations=locations))))
    if locations == {}:
        assert refusal(path).field == "/runs/0/results/0/locations"
    else:
        [draft] = drafts(path)
        assert draft.path is None
        assert draft.line is None


@pytest.mark.parametrize(
    "region", [{}, None, {"startLine": 0}, {"startLine": -3}, {"startLine": "x"}, {"startLine": 1e99}]
)
def test_lines_without_sense_are_left_out(tmp_path: Path, region: Any) -> None:
    """What is no line is no reason to lose the finding: sealing drops it."""
    location = {"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": region}}
    path = written(tmp_path, sarif(run(result(None, locations=[location]))))
    [finding] = sealed(drafts(path))
    assert (finding.path, finding.line) == ("a.py", None)


def test_what_was_not_found_is_no_finding(tmp_path: Path) -> None:
    """Kinds `pass` and `notApplicable`, and what only the baseline has, are passed over."""
    log = sarif(run(result(kind="pass"), result(kind="notApplicable"), result(baselineState="absent"), result()))
    assert len(drafts(written(tmp_path, log))) == 1


@pytest.mark.parametrize(
    ("suppressions", "suppressed"),
    [
        (None, False),
        ([], False),
        ([{"kind": "inSource"}], True),
        ([{"kind": "external", "status": "accepted"}], True),
        ([{"kind": "external", "status": "underReview"}], False),
        ([{"kind": "inSource"}, {"kind": "external", "status": "rejected"}], False),
    ],
)
def test_suppressions_are_kept_and_decide_nothing(tmp_path: Path, suppressions: Any, suppressed: bool) -> None:
    """What the source suppresses is a finding like another, which says so (issue 6)."""
    draft = one(tmp_path, result(suppressions=suppressions))
    assert draft.suppressed is suppressed
    assert ("suppression.kind" in draft.metadata) is bool(suppressions)


def test_files_that_a_tool_failed_on_are_told(tmp_path: Path) -> None:
    """An error of the tool's own about a file is missing coverage, not silence (spec D-24)."""
    notification = {
        "level": "error",
        "message": {"text": "cannot parse"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "b.py"}}}],
    }
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": [notification, {"level": "note"}, 7]}
    path = written(tmp_path, sarif(run(invocations=[invocation])))
    assert readings(path) == [Unread("b.py", "cannot parse", failed=True)]


def test_an_error_that_is_about_no_file_is_told(tmp_path: Path) -> None:
    """What the tool found may not be all (spec D-24)."""
    notification = {"level": "error", "message": {"text": "the rules cannot be loaded"}}
    invocation = {"executionSuccessful": True, "toolConfigurationNotifications": [notification, {"level": "warning"}]}
    path = written(tmp_path, sarif(run(invocations=[invocation])))
    assert readings(path) == [Trouble("the rules cannot be loaded")]


@pytest.mark.parametrize(
    "location",
    [
        {"physicalLocation": {"artifactLocation": {"uri": "."}}},
        {"physicalLocation": {"artifactLocation": {"uri": "https://example.org/rules"}}},
        {"logicalLocations": [{"name": "main"}]},
        7,
    ],
)
def test_an_error_about_what_is_no_file_of_a_tree_is_told(tmp_path: Path, location: Any) -> None:
    """It is about all of the tree, for all that anybody knows (spec D-24)."""
    notification = {"level": "error", "message": {"text": "out of memory"}, "locations": [location]}
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": [notification]}
    path = written(tmp_path, sarif(run(invocations=[invocation])))
    assert readings(path) == [Trouble("out of memory")]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({}, "error"),
        ({"level": "note"}, "note"),
        ({"provenance": {"invocationIndex": 0}}, "error"),
        ({"provenance": {"invocationIndex": 7}}, "note"),
        ({"ruleId": "R1/2"}, "error"),
        ({"ruleId": "R2"}, "warning"),
    ],
)
def test_an_invocation_configures_the_levels_of_rules(tmp_path: Path, members: Any, says: str) -> None:
    """What a result says of itself comes before that, and what the rule says by default after it."""
    rules: list[dict[str, Any]] = [{"id": "R1", "defaultConfiguration": {"level": "note"}}, {"id": "R2"}]
    override = {"descriptor": {"id": "R1", "index": 0}, "configuration": {"level": "error"}}
    invocation = {"executionSuccessful": True, "ruleConfigurationOverrides": [override, 7, {}]}
    path = written(tmp_path, sarif(run(result(**members), rules=rules, invocations=[invocation])))
    [draft] = drafts(path)
    assert draft.level == says


def test_of_several_invocations_the_one_that_a_result_names_counts(tmp_path: Path) -> None:
    """Without a name it is of none of them."""
    invocations = [
        {
            "executionSuccessful": True,
            "ruleConfigurationOverrides": [{"descriptor": {"id": "R1"}, "configuration": {"level": level}}],
        }
        for level in ("error", "note")
    ]
    results = [result(line=1, provenance={"invocationIndex": 1}), result(line=2)]
    path = written(tmp_path, sarif(run(*results, rules=[{"id": "R1"}], invocations=invocations)))
    assert [draft.level for draft in drafts(path)] == ["note", "warning"]


def test_a_run_that_failed_proves_nothing(tmp_path: Path) -> None:
    """A run that says it was not successful is refused, whatever it found (spec D-24; field case R88)."""
    path = written(tmp_path, sarif(run(), run(invocations=[{"executionSuccessful": False}])))
    assert refusal(path).field == "/runs/1/invocations"


def test_every_run_counts(tmp_path: Path) -> None:
    """Each run has rules and places of its own."""
    first = run(result(ruleId=None, ruleIndex=0), rules=[{"id": "A"}])
    second = run(result(ruleId=None, ruleIndex=0), rules=[{"id": "B"}])
    assert [draft.rule for draft in drafts(written(tmp_path, sarif(first, second)))] == ["A", "B"]
