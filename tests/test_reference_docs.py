"""What the reference says of states, events, errors and settings is what the code says, and nothing is left out."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import product

import pytest

from docs.generate.api import MODULES, described
from docs.generate.diagram import check, diagram
from docs.generate.http import operations, rights
from docs.generate.layout import BOXES, LINES
from docs.generate.markdown import members, prose
from docs.generate.pages import PAGES, REFERENCE
from testigo import errors, settings
from testigo.journal.catalogue import CATALOGUE
from testigo.rules.states import State
from testigo.rules.transitions import TRANSITIONS, Command
from testigo.web.api.openapi import document
from testigo.web.api.routes import routes


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    """The committed file is the one that the generator writes (spec A-01, A-04, A-05)."""
    written = (REFERENCE / name).read_text("utf-8")
    assert written == PAGES[name](), f"docs/reference/{name} is old: run `python -m docs.generate` and commit it"


def test_every_state_and_command_is_explained() -> None:
    """No state and no command is without its sentence (spec A-04, A-05)."""
    assert set(members(State)) == set(State.__members__)
    assert set(members(Command)) == set(Command.__members__)


def test_every_setting_is_explained() -> None:
    """No default and no limit is without its sentence."""
    concerns = [cls for cls in vars(settings).values() if isinstance(cls, type) and is_dataclass(cls)]
    assert concerns
    for cls in concerns:
        assert set(members(cls)) == {setting.name for setting in fields(cls)}, cls.__name__


def test_every_event_is_explained() -> None:
    """Each event of the engine says in its own words what it tells (spec A-01, A-03)."""
    page = (REFERENCE / "events.md").read_text("utf-8")
    for event, model in CATALOGUE.items():
        assert f"## {event}\n\n{prose(model.__doc__)}\n" in page


def test_every_error_has_a_meaning_of_its_own_and_a_row() -> None:
    """Each public error has its code, which no other has, a sentence of its own and a row in the reference."""
    page = (REFERENCE / "errors.md").read_text("utf-8")
    classes = [getattr(errors, name) for name in errors.__all__ if name != "Error"]
    assert len({cls.code for cls in classes}) == len(classes)
    for cls in classes:
        assert cls.__dict__["__doc__"], cls.__name__
        assert f"| `{cls.code}` | `{cls.__name__}` |" in page


def test_every_route_is_explained() -> None:
    """Each has a section with its right; what it lacks to be told of stops the page (see also tests/web/api)."""
    page = (REFERENCE / "http.md").read_text("utf-8")
    needs = rights()
    for method, path, told in operations(document(routes.router)):
        assert f"### {method} {path}\n\n{prose(told['description'])}\n" in page
        assert told["operationId"] in needs or told["security"] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_says_what_it_promises(name: str) -> None:
    """Each has a section, and a docstring of its own, not one that a base or a generator wrote."""
    page = (REFERENCE / "api.md").read_text("utf-8")
    for each, thing in described(import_module(name)):
        assert f"### {name}.{each}\n" in page
        assert thing.__doc__, each
        assert not thing.__doc__.startswith(f"{each}("), f"{each}: a dataclass without a docstring"


def test_the_diagram_shows_every_state_and_each_edge_once() -> None:
    """Each state has a box, each pair of states with an edge a line, and each command stands beside one
    (spec A-04, A-05)."""
    drawn = diagram()
    assert set(BOXES) == set(State)
    shown = [pair for line in LINES for pair in product(line.sources, line.targets)]
    assert sorted(shown) == sorted({(edge.source, edge.target) for edge in TRANSITIONS})
    words = set(re.findall(r"\w+", " ".join(re.findall(r'<text class="label"[^>]*>([^<]*)<', drawn))))
    assert {str(command) for command in Command} <= words


def test_a_diagram_that_lags_behind_the_table_is_not_drawn() -> None:
    """A line too few, too many or twice stops the generator (spec A-05)."""
    check(LINES)
    for lines in (LINES[1:], (*LINES, LINES[0]), LINES[:-1]):
        with pytest.raises(SystemExit, match="does not show each edge once"):
            check(lines)
