"""Docstrings as Markdown: paragraphs unfolded, ids linked to what they demand, tables."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

__all__ = ["members", "page", "prose", "sentence", "table"]

NOTE = "<!-- Generated from {source} by `python -m docs.generate`; change it there. -->"

_ID = re.compile(r"\b(?:spec )?((?:[ABCDP]-\d{2})|R\d{2,3}|Promise \d{1,2})\b")
_MODEL = re.compile(r"\b(?:spec )?model\.md\b")


def page(title: str, source: str, *parts: str, wide: bool = False) -> str:
    """A page of these parts; a wide one leaves out its own table of contents."""
    front = "---\nhide: [toc]\n---\n\n" if wide else ""
    return front + "\n\n".join([NOTE.format(source=source), f"# {title}", *parts]) + "\n"


def prose(docstring: str | None) -> str:
    """The paragraphs of a docstring, each on one line."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring or ""))
    return "\n\n".join(_linked(" ".join(paragraph.split())) for paragraph in paragraphs)


def sentence(docstring: str | None) -> str:
    """A docstring for a cell of a table: all of it, on one line."""
    return prose(docstring).replace("\n\n", " ").replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines)


def members(cls: type) -> dict[str, str]:
    """What stands as a string below each assignment of a class body, by the name that is assigned."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for here, below in pairwise(definition.body):
        match here, below:
            case (
                ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = text
    return found


def _linked(text: str) -> str:
    """Text in which each id is a link, except within code."""
    parts = text.split("`")
    plain = [escape(part, quote=False) for part in parts[::2]]
    parts[::2] = [_MODEL.sub("[model](requirements.md#the-model)", _ID.sub(_link, part)) for part in plain]
    return "`".join(parts)


def _link(found: re.Match[str]) -> str:
    name = found[1]
    return f"[{name}](requirements.md#{name.lower().replace(' ', '-')})"
