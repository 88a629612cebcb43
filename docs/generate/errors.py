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
    tables = [part for family in _under(Error) for part in _family(family)]
    tree = "\n".join(["```text", *_tree(Error, ""), "```"])
    return page(
        "Errors",
        "src/testigo/errors/",
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
    for cls in _under(family):
        yield cls
        yield from _below(cls)


def _tree(cls: type[Error], indent: str) -> Iterator[str]:
    yield f"{indent}{cls.__name__}"
    for below in _under(cls):
        yield from _tree(below, f"{indent}    ")


def _under(cls: type[Error]) -> list[type[Error]]:
    """Those directly below it: the families in the order of their exit status, others as they are written."""
    return sorted(filter(_is_ours, cls.__subclasses__()), key=lambda below: below.exit_status)


def _is_ours(cls: type[Error]) -> bool:
    """Whether the library itself defines it: tests and users may derive others."""
    return cls.__module__ == errors.__name__
