"""Every sentence that the panel can say, found in its templates and modules: what `words/*.json` have to have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, nodes

from testigo import errors
from testigo.access.audit import Result
from testigo.access.roles import Right, Role
from testigo.errors import Busy, Conflict, Denied, Error, Invalid, Missing
from testigo.evidence.model import AnalysisState
from testigo.operations import OperationState, Outcome
from testigo.rules.decide import Policy
from testigo.rules.evidence.exemption import ExemptionState
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.occurrence import Presence
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity
from testigo.rules.transitions import EventType
from testigo.web import panel
from testigo.web.panel.documents import NAMES
from testigo.web.panel.icons import STATES
from testigo.web.problems import HTTP_TOLD, REMEDIES

__all__ = ["PANEL", "sentences"]

PANEL = Path(panel.__file__).parent
WEB = PANEL.parent

_REFUSING = ("*.py", "panel/**/*.py", "security/**/*.py", "../access/**/*.py", "../operations/**/*.py")
"""What refuses the requests of pages."""

_WORDED = re.compile(r"[^<>\n]*[A-Za-z] [^<>\n]*|[A-Z][a-z]+")
"""What a table of a module says: several words, or one that begins as a sentence does."""


_OTHER_PHRASES = (
    "Content Too Large",
    "Range Not Satisfiable",
    "Request Entity Too Large",
    "Request-URI Too Long",
    "Requested Range Not Satisfiable",
    "URI Too Long",
    "Unprocessable Content",
    "Unprocessable Entity",
)
"""Some statuses have one phrase up to Python 3.12, and another from 3.13 on."""


def sentences() -> frozenset[str]:
    """All of them, in English."""
    return frozenset({*_of_templates(), *_of_modules(), *_of_closed_sets(), *_of_refusals()})


def _of_templates() -> Iterator[str]:
    for file in (PANEL / "templates").glob("*.html"):
        tree = Environment(autoescape=True).parse(file.read_text("utf-8"))
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "t":
                said = call.args[0]
                for each in (said.expr1, said.expr2) if isinstance(said, nodes.CondExpr) else (said,):
                    if isinstance(each, nodes.Const):
                        yield each.value


def _of_modules() -> Iterator[str]:
    for file in PANEL.glob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from _of_call(node)
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and not _is_private_matter(statement):
                yield from (text for text in _texts(statement) if _WORDED.fullmatch(text))


def _of_call(call: ast.Call) -> Iterator[str]:
    """What is said by `t("…")`, by `words(request)("…")`, and by a page's title."""
    says = ast.unparse(call.func) in ("t", "words(request)", "self._t")
    said = [*(call.args[:1] if says else ()), *(each.value for each in call.keywords if each.arg == "title")]
    yield from (each.value for each in said if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _is_private_matter(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether it is no table of words: a pattern, a statement of SQL, markup, names of columns or files."""
    if "__all__" in ast.unparse(statement)[:8]:
        return True
    value = "" if statement.value is None else ast.unparse(statement.value)
    return value.startswith(("re.compile", "Markup", "Statement", "Annotated", "Routes", "Environment", "Path"))


def _texts(statement: ast.AST) -> Iterable[str]:
    keys = {id(key) for node in ast.walk(statement) if isinstance(node, ast.Dict) for key in node.keys}
    return (
        node.value
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in keys
    )


def _of_refusals() -> Iterator[str]:
    """What pages refuse with: the remedies of the tree of errors, and what is said where a request is refused."""
    for family in (Invalid, Conflict, Missing, Denied, Busy):
        yield from (kind.remedy for kind in _tree(family))
    yield from REMEDIES
    for _, detail, remedy in HTTP_TOLD.values():
        yield from (detail, remedy)
    for file in (file for files in _REFUSING for file in WEB.glob(files)):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield from _of_refusal(node)


def _of_refusal(call: ast.Call) -> Iterator[str]:
    """An error's message and its remedy, where they hold no facts."""
    said = [each.value for each in call.keywords if each.arg == "remedy"]
    if ast.unparse(call.func) in {kind.__name__ for kind in _tree(Error)}:
        said += call.args[:1]
    yield from (
        each.value for each in said if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value
    )


def _tree(kind: type[Error]) -> Iterator[type[Error]]:
    if kind.__module__ == errors.__name__:
        yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


def _of_closed_sets() -> Iterator[str]:
    """States, roles, rights, documents … as they are named on pages."""
    evidence = (AnalysisState, Decision, ExemptionState, Presence, Severity, Verdict)
    for names in (STATES, Role, Right, Result, Outcome, OperationState, Policy, *evidence):
        yield from (str(name).replace("_", " ") for name in names)
    yield from (name.capitalize() for name in NAMES)
    yield from (str(event).removeprefix("job.").replace("_", " ") for event in EventType)
    yield from (status.phrase for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST)
    yield from _OTHER_PHRASES
