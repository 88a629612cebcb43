"""What each role may do is told to people as it is."""

from __future__ import annotations

import inspect
import os
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from testigo import access
from testigo.access.act import act
from testigo.access.roles import RIGHTS, Right, Role
from testigo.access.who import Via, Who
from testigo.errors import Forbidden
from tests.access.people import People
from tests.scenes import SCENES

PAGE = (Path(__file__).parents[2] / "docs/how-to/access.md").read_text("utf-8")


def test_the_guides_table_is_the_table() -> None:
    """Each right with its roles, in the same order, and no other."""
    head, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\| .*", PAGE, re.MULTILINE)
    )
    roles = [Role(name) for name in head[2:]]
    assert set(roles) == set(Role)
    told = {
        row[0].strip("`"): {role for role, cell in zip(roles, row[2:], strict=True) if cell == "yes"} for row in rows
    }
    assert told == {str(right): {role for role in Role if right in RIGHTS[role]} for right in Right}
    assert list(told) == [str(right) for right in Right]


@pytest.mark.parametrize("role", Role)
def test_who_may_not_is_told_who_may(role: Role) -> None:
    """By the right and the roles that have it."""
    who = Who("ana", role, Via.LOGIN)
    for right in Right:
        if who.may(right):
            who.must(right)
        else:
            with pytest.raises(Forbidden, match=rf"no right to {right}; (\w+(, \w+)* and )?admin ha"):
                who.must(right)


def test_every_command_of_access_is_broken_at_each_of_its_statements() -> None:
    """No command that keeps a receipt is left out of `guarantees/test_crash_at_every_statement.py`, nor is `act`."""
    attacked = {scene.command for scene in SCENES.values()}
    assert act in attacked
    for found in pkgutil.iter_modules(access.__path__):
        module = import_module(f"{access.__name__}.{found.name}")
        public = [getattr(module, name) for name in module.__all__]
        commands = [each for each in public if inspect.isfunction(each) and "action" in inspect.get_annotations(each)]
        assert [command.__name__ for command in commands if command not in attacked] == []


def test_actors_of_different_kinds_have_different_names() -> None:
    """A token called ana is not the user ana."""
    assert {Who("ana", Role.VIEWER, via).actor for via in Via} == {"user:ana", "token:ana", "cli:ana", "oidc:ana"}


def test_the_audit_is_verified_as_the_guide_says(people: People, database_url: str, tmp_path: Path) -> None:
    """The block is a program that does it."""
    who = people.user()
    for _ in range(3):
        people.db.run(act, people.order(who), lambda c: None)
    (block,) = re.findall(r"```python\n# verify_audit.py\n(.*?)```", PAGE, re.DOTALL)
    program = tmp_path / "verify_audit.py"
    program.write_text(block)
    environment = {**os.environ, "TESTIGO_URL": database_url}
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == f"whole up to row 3: {people.audit()[-1].chain}\n"
