"""The page of errors: code, statuses and remedy of each."""

from __future__ import annotations

from collections.abc import Iterator

from docs.generate.markdown import page, prose, sentence, table
from testigo import errors
from testigo.errors import Error

__all__ = ["errors_page"]

INTRO = """
A refusal is raised, and every door answers alike: code, HTTP status and exit status belong to the class
(spec model.md). Each class is in `testigo.errors`.
"""


def errors_page() -> str:
    """The tree of errors, family by family."""
    families = [family for family in Error.__subclasses__() if _is_ours(family)]
    tables = [part for family in families for part in _family(family)]
    tree = "\n".join(["```text", *_tree(Error, ""), "```"])
    return page(
        "Errors",
        "src/testigo/errors.py",
        prose(INTRO),
        prose(Error.__doc__),
        *tables,
        "## The tree",
        "Whoever catches a class catches those below it.",
        tree,
        wide=True,
    )


def _family(family: type[Error]) -> Iterator[str]:
    rows = [
        [
            f"`{cls.code}`",
            f"`{cls.__name__}`",
            str(cls.http_status),
            str(cls.exit_status),
            sentence(cls.__doc__),
            sentence(cls.remedy),
        ]
        for cls in [family, *_below(family)]
    ]
    yield f"## {family.__name__}"
    yield table(["code", "class", "HTTP", "exit", "meaning", "remedy"], rows)


def _below(family: type[Error]) -> Iterator[type[Error]]:
    for cls in family.__subclasses__():
        if _is_ours(cls):
            yield cls
            yield from _below(cls)


def _tree(cls: type[Error], indent: str) -> Iterator[str]:
    yield f"{indent}{cls.__name__}"
    for below in cls.__subclasses__():
        if _is_ours(below):
            yield from _tree(below, f"{indent}    ")


def _is_ours(cls: type[Error]) -> bool:
    """Whether the library itself defines it: tests and users may derive others."""
    return cls.__module__ == errors.__name__
