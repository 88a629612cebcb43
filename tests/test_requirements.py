"""Requirements, code and tests name the same ids.

`docs/reference/requirements.md` says of every requirement whether this release shows it. These tests read that page and
the docstrings of all code, and fail where the two disagree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testigo.rules.states import EXPRESS, LEASED, PHASES, TERMINAL, State
from testigo.rules.transitions import TRANSITIONS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "requirements.md"
PACKAGE = ROOT / "src" / "testigo"

ROOMS = frozenset({"settings", "rules", "store", "authority", "journal", "worker", "evidence", "pipelines"})
ROOMS |= {"missions", "express", "web", "cli"}
PARTS = frozenset({"panel", "pipelines", "missions", "express", "limits", "release"})

ID = re.compile(r"\b(?:[ABCDP]-\d{2}|R\d{2,3}|Promise \d{1,2})\b")
HEADING = re.compile(rf"^### (?P<id>{ID.pattern})\n(?P<body>.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
LAST_LINE = re.compile(r"^\*Kept by:\* (?P<kept>.+) · \*Shown by:\* (?P<shown>.+)\Z", re.MULTILINE)
SHOWN = re.compile(r"(?P<now>now(?: \([^()]+\))?)?(?P<both>; )?(?:later \((?P<later>[^()]+)\))?")


@dataclass(frozen=True, slots=True)
class Entry:
    """One requirement as the page has it: its id, the rooms that keep it, and when it is shown."""

    id: str
    rooms: tuple[str, ...]
    now: bool
    parts: tuple[str, ...]


def entries(page: str) -> list[Entry]:
    """Every requirement of the page, in its order; an entry that does not follow the page's form raises ValueError."""
    return [entry(match["id"], match["body"].strip()) for match in HEADING.finditer(page)]


def entry(name: str, body: str) -> Entry:
    """One requirement, read from the text under its heading."""
    last = LAST_LINE.search(body)
    shown = SHOWN.fullmatch(last["shown"]) if last else None
    if last is None or shown is None:
        raise ValueError(f"{name}: its last line is not '*Kept by:* … · *Shown by:* …'")
    if bool(shown["both"]) != bool(shown["now"] and shown["later"]) or not (shown["now"] or shown["later"]):
        raise ValueError(f"{name}: shown by neither 'now' nor 'later (part)'")
    parts = tuple(share.partition(":")[0].strip() for share in (shown["later"] or "").split(";") if share)
    return Entry(name, tuple(re.findall(r"`(\w+)`", last["kept"])), bool(shown["now"]), parts)


def gaps(ids: Iterable[str]) -> list[str]:
    """The ids that are out of their place: each numbered group runs 1, 2, 3 … once, without a gap."""
    wrong, last = [], {"A": 0, "B": 0, "C": 0, "D": 0, "P": 0, "Promise": 0}
    for name in ids:
        group, _, number = name.replace("-", " ").partition(" ")
        if group not in last:
            continue
        if int(number) != last[group] + 1:
            wrong.append(name)
        last[group] = int(number)
    return wrong


def cited(source: str) -> set[str]:
    """The ids that any docstring of this source names."""
    return ids_in(ast.walk(ast.parse(source)))


def shown(source: str) -> set[str]:
    """The ids that the tests of this source name: docstrings of functions `test_…` and classes `Test…` only."""
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return ids_in(
        node for node in ast.walk(ast.parse(source)) if isinstance(node, named) and node.name.lower().startswith("test")
    )


def ids_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The ids in the docstrings of these nodes."""
    documented = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        name for node in nodes if isinstance(node, documented) for name in ID.findall(ast.get_docstring(node) or "")
    }


def rows(text: str) -> list[list[str]]:
    """The cells of every table row in this text that begins with code."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]


def sources(*folders: str) -> Iterator[Path]:
    """Every Python file of these folders of the repository."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_every_requirement_that_is_marked_now_is_named_by_a_test() -> None:
    """What the page calls shown in this release is named by the docstring of at least one test."""
    named = set[str]().union(*(shown(path.read_text("utf-8")) for path in sources("tests")))
    missing = [one.id for one in entries(PAGE.read_text("utf-8")) if one.now and one.id not in named]
    assert not missing, f"marked now, but no test names them: {', '.join(missing)}"


def test_no_requirement_that_is_marked_later_alone_is_named_by_a_test() -> None:
    """What a test shows is told of, be it a share of the rule: *later* alone says that there is nothing yet."""
    named = set[str]().union(*(shown(path.read_text("utf-8")) for path in sources("tests")))
    stale = [one.id for one in entries(PAGE.read_text("utf-8")) if not one.now and one.id in named]
    assert not stale, f"marked later, and a test names them: {', '.join(stale)}"


def test_every_id_that_a_docstring_names_is_on_the_page() -> None:
    """A reader who meets an id in a docstring finds it explained."""
    known = {one.id for one in entries(PAGE.read_text("utf-8"))}
    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("src", "tests")
        for name in cited(path.read_text("utf-8")) - known
    }
    assert not unknown, f"not in requirements.md: {', '.join(sorted(unknown))}"


def test_the_ids_of_each_group_are_contiguous() -> None:
    """No requirement was left out, repeated or misplaced."""
    ids = [one.id for one in entries(PAGE.read_text("utf-8"))]
    assert gaps(ids) == []
    assert {"A-19", "B-24", "C-12", "D-24", "P-32", "Promise 10"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_every_requirement_names_known_rooms_and_parts() -> None:
    """Each entry is kept by rooms of the tree and, where it is not shown yet, belongs to a named part."""
    for one in entries(PAGE.read_text("utf-8")):
        assert one.rooms, one.id
        assert set(one.rooms) <= ROOMS, f"{one.id}: kept by {one.rooms}"
        assert set(one.parts) <= PARTS, f"{one.id}: later {one.parts}"


def test_a_requirement_that_is_shown_now_is_kept_by_a_room_that_exists() -> None:
    """At least one room that keeps it has code."""
    rooms = {path.stem for path in PACKAGE.iterdir()}
    homeless = [one.id for one in entries(PAGE.read_text("utf-8")) if one.now and not rooms & set(one.rooms)]
    assert not homeless, f"marked now, but kept by no room that exists: {', '.join(homeless)}"


def test_the_page_has_the_transitions_of_the_table() -> None:
    """The page's transitions are exactly the edges of the table in `rules`."""
    text = PAGE.read_text("utf-8").partition("### A-05\n")[2].partition("\n### ")[0]
    written = {
        (source, target)
        for source, *targets in rows(text)
        for cell in targets
        for target in re.findall(r"`(\w+)`", cell)
    }
    assert written == {(f"`{edge.source}`", str(edge.target)) for edge in TRANSITIONS}


def test_the_page_has_the_states_and_their_phases() -> None:
    """The page's table of states agrees with `rules`, phase by phase."""
    text = PAGE.read_text("utf-8").partition("### States\n")[2].partition("\n### ")[0]
    yes = {True: "yes", False: "no"}
    assert {tuple(row[:5]) for row in rows(text)} == {
        (f"`{state}`", str(PHASES[state]), EXPRESS.get(state, "-"), yes[state in LEASED], yes[state in TERMINAL])
        for state in State
    }


def test_these_checks_can_fail() -> None:
    """On small samples the checks see what is missing, unknown, misplaced or malformed."""
    line = "*Kept by:* `rules`, `store` · *Shown by:* "
    half = f"### P-01\n**One.** Text.\n\n{line}now (half); later (worker: x; command line)\n"
    first, second = entries(f"{half}\n### P-03\nText.\n\n{line}later (worker)\n")
    assert first == Entry("P-01", ("rules", "store"), True, ("worker", "command line"))
    assert second == Entry("P-03", ("rules", "store"), False, ("worker",))
    assert gaps(["P-01", "P-03"]) == ["P-03"]
    assert gaps(["P-01", "P-01"]) == ["P-01"]

    code = (
        '"""Keeps P-07."""\n'
        'def test_one():\n    """Shows P-01 and Promise 4."""\n    "P-09"\n'
        'def helper():\n    """P-08"""\n'
    )
    assert shown(code) == {"P-01", "Promise 4"}
    assert cited(code) == {"P-01", "P-07", "P-08", "Promise 4"}

    for shown_by in ("soon", "now later (worker)", "; later (worker)", "now; ", "later (worker"):
        assert refuses(f"### P-01\nText.\n\n{line}{shown_by}\n"), shown_by
    assert refuses("### P-01\nText without its last line.\n")


def refuses(page: str) -> bool:
    """Whether the page is refused as malformed."""
    try:
        entries(page)
    except ValueError:
        return True
    return False
