"""Comments about more than their own line suppress what they suppress for ruff, and nothing else (spec D-14)."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testigo.evidence.analysers import analyser
from testigo.evidence.analysers.programs import module
from testigo.evidence.analysers.silences import silences
from tests.evidence.analysers.running import findings, readings, task, tree

MARK = "\ufeff"
CALL = "subprocess.call('/x', shell=True)\n"
CASES = {
    "a range": "# ruff: disable[S602]\n{c}# ruff: enable[S602]\n{c}",
    "to the end of the file": "{c}# ruff: disable[S602] because\n{c}def f():\n    {c}",
    "to the end of the block": "def f():\n    # ruff: disable[S602]\n    {c}    {c}{c}",
    "at the end of a block": "def f():\n    x = 1\n    # ruff: disable[S602]\n{c}",
    "behind a block": "def f():\n    x = 1\n# ruff: disable[S602]\n{c}",
    "enabled in another block": "# ruff: disable[S602]\ndef f():\n    # ruff: enable[S602]\n    {c}{c}",
    "deeper than its block": "    # ruff: disable[S602]\n{c}",
    "less deep than its block": "def f():\n    x = 1\n# ruff: disable[S602]\n    {c}{c}",
    "within another": "# ruff: disable[S602]\n" * 2 + "{c}# ruff: enable[S602]\n" * 2 + "{c}",
    "crossed": "# ruff: disable[S602]\n# ruff: disable[F401]\n{c}# ruff: enable[S602]\n{c}",
    "other codes": "# ruff: disable[S602,F401]\n{c}# ruff: enable[ S602 , F401 ]\n{c}# ruff: disable[F401]\n{c}",
    "of two codes one is enabled": "# ruff: disable[S602,F401]\n{c}# ruff: enable[S602]\n{c}",
    "behind code": "x = 1  # ruff: disable[S602]\n{c}",
    "no codes": "# ruff: disable\n{c}# ruff: disable[]\n{c}",
    "a group, a name, small letters": "# ruff: disable[S]\n# ruff: disable[s602]\n# RUFF: disable[S602]\n{c}",
    "in a string": "x = '''\n# ruff: disable[S602]\n# ruff: file-ignore[S602]\n'''\n{c}",
    "the file, late": "{c}# ruff: file-ignore[F401, S602]\n{c}",
    "the file, from within a block": "def f():\n    # ruff: file-ignore[S602]\n    x = 1\n{c}",
    "the file, behind code": "x = 1  # ruff: file-ignore[S602]\n{c}",
    "the next statement": "# ruff: ignore[S602]\n\n# more\n{c}{c}",
    "the next statement of many lines": "# ruff: ignore[S602]\nx = [\n    {c},\n    {c},\n]\n{c}",
    "the next statement, not its block": "# ruff: ignore[S602]\ndef f():\n    {c}",
    "the next line in brackets": "x = [\n    # ruff: ignore[S602]\n    {c},\n    {c},\n]\n",
    "a line of a statement that is no finding's": "x = [\n    {c},\n    # ruff: ignore[S602]\n    1,\n]\n",
}
LINES = (
    "    # ruff: {w}[{of}]",
    "# ruff: {w}[{of}]",
    "  # ruff: {w}[{of}]",
    "call",
    "call",
    "call",
    "x = [\n{i}    call,\n{i}]",
)


def program(seed: int) -> str:
    """Blocks within blocks, with such comments in every place, at every depth."""
    chance = random.Random(seed)

    def block(indent: str) -> Iterator[str]:
        for _ in range(chance.randint(1, 4)):
            word, of = chance.choice(["disable", "enable", "ignore"]), chance.choice(["S602", "S607", "S607,S602"])
            line = chance.choice([*LINES, "{i}# ruff: {w}[{of}]", "{i}# ruff: {w}[{of}]", "{i}# ruff: {w}[{of}]"])
            yield (indent if line[0] in "cx" else "") + line.format(w=word, of=of, i=indent)
            if len(indent) < 12 and chance.random() < 0.4:
                yield f"{indent}if x:"
                yield from block(f"{indent}    ")
        yield f"{indent}call"

    text = "\n".join(block(""))
    return f"import subprocess\n\nx = 1\n{text}\n".replace("call", CALL.strip())


def told(root: Path, work: Path) -> tuple[Mapping[str, set[int]], Mapping[str, set[int]]]:
    """The lines of each file that we suppress, and those that ruff does."""
    found = [each for each in findings(readings(analyser("ruff", apart=work), task(root, work))) if each.rule == "S602"]
    args = module("ruff", "check", "--isolated", "--no-cache", "--select", "S602", "--output-format", "json", ".")
    left = json.loads(subprocess.run(args, cwd=root, capture_output=True, check=False).stdout)
    counts = {(Path(each["filename"]).name, each["location"]["row"]) for each in left}
    names = {str(each.path) for each in found}
    ours = {name: {each.line or 0 for each in found if each.path == name and each.suppressed} for name in names}
    every = {name: {each.line or 0 for each in found if each.path == name} for name in names}
    return ours, {name: {line for line in every[name] if (name, line) not in counts} for name in names}


def test_what_a_comment_is_about_is_suppressed_as_ruff_has_it(tmp_path: Path) -> None:
    """In each of these places, and in a file that begins with a mark of its byte order too."""
    files = {
        f"{at}.py": f"{MARK * (at % 2)}import subprocess\n{each.format(c=CALL)}".replace("\n,", ",")
        for at, each in enumerate(CASES.values())
    }
    ours, ruffs = told(tree(tmp_path / "tree", files), tmp_path / "work")
    assert len(ours) == len(CASES)
    named = dict(zip(files, CASES, strict=True))
    assert {named[name]: lines for name, lines in ours.items()} == {named[name]: lines for name, lines in ruffs.items()}
    assert sum(map(len, ours.values())) > len(CASES) // 2


def test_wherever_comments_stand_nothing_is_suppressed_that_ruff_would_tell(tmp_path: Path) -> None:
    """It may be less: where a comment stands askew, what it is about counts."""
    files = {f"{seed}.py": program(seed) for seed in range(60)}
    ours, ruffs = told(tree(tmp_path / "tree", files), tmp_path / "work")
    assert {name: ours[name] - ruffs[name] for name in ours if ours[name] - ruffs[name]} == {}
    assert sum(map(len, ours.values())) > 20


@pytest.mark.parametrize("text", ["x = (", "if x:\n  y\n z", "x = '''"], ids=["open", "dedent", "string"])
def test_what_is_no_python_asks_for_nothing(text: str) -> None:
    """Nobody knows there what is a comment."""
    assert silences(["# ruff: file-ignore[S602]\n", "x = 1\n"]).about("S602", 2, 2)
    assert not silences(["# ruff: file-ignore[S602]\n", *f"{text}\n".splitlines(keepends=True)]).about("S602", 2, 2)
