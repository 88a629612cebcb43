"""The page of the API: every public name, with its signature and what it promises."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from docs.generate.markdown import page, prose

__all__ = ["MODULES", "api_page", "described"]

MODULES = ("testigo", "testigo.testing", "testigo.contrib.fastapi", "testigo.contrib.django")
"""Whose public names users import."""

LINE_CHARS_MAX = 100

_GIVEN = frozenset({"AsyncContext", "AsyncHandler", "Clock", "Context", "Handler", "Job", "Trial"})
"""Classes whose instances users are given, and do not make."""

_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}

_SAME = {"AsyncHandler": "Handler"}
"""Classes of which nothing can be told that is not told of another."""

INTRO = """
What is imported by users. A name that stands here keeps its meaning from release to release; what is imported from
elsewhere is described in the source, and may change.
"""


def api_page() -> str:
    """Module by module, the names in the order of the alphabet."""
    parts = [part for name in MODULES for part in _module(import_module(name))]
    return page("API", "the docstrings of src/testigo", prose(INTRO), *parts)


def described(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a module, each with what it names."""
    for name in sorted(module.__all__, key=str.casefold):
        yield name, getattr(module, name)


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## {module.__name__}"
    for name, thing in described(module):
        yield f"### {module.__name__}.{name}"
        yield _signature(name, thing)
        yield prose(thing.__doc__)
        if isinstance(thing, type):
            yield from _members(thing)


def _members(cls: type) -> Iterator[str]:
    """The methods and properties of a class and of those of its bases that are ours."""
    if issubclass(cls, Enum):
        return
    if cls.__name__ in _SAME:
        yield f"Its methods are those of `{_SAME[cls.__name__]}`."
        return
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("testigo"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen or not _is_told(member):
                continue
            seen.add(name)
            function = member.fget if isinstance(member, property) else inspect.unwrap(member)
            shown = f"{cls.__name__}.{name}"
            yield f"#### {shown}"
            if not isinstance(member, property):
                yield _signature(shown, function)
            yield prose(function.__doc__)


def _is_told(member: object) -> bool:
    function = member.fget if isinstance(member, property) else member
    return isinstance(function, FunctionType) and bool(function.__doc__)


def _signature(name: str, thing: Any) -> str:
    """How it is called, on one line or a parameter a line; only the name of what users do not call."""
    if isinstance(thing, type) and not _is_made_by_users(thing):
        return f"```python\n{name}\n```"
    signature = inspect.signature(thing)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    given = [_parameter(each) for each in parameters]
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        given.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        given.insert(kinds.count(inspect.Parameter.POSITIONAL_ONLY), "/")
    answer = "" if isinstance(thing, type) else f" -> {_annotation(signature.return_annotation)}"
    called = f"async {name}" if inspect.iscoroutinefunction(thing) else name
    line = f"{called}({', '.join(given)}){answer}"
    if len(line) > LINE_CHARS_MAX:
        line = f"{called}(\n" + "".join(f"    {each},\n" for each in given) + f"){answer}"
    return f"```python\n{line}\n```"


def _is_made_by_users(cls: type) -> bool:
    is_error_below_the_root = issubclass(cls, BaseException) and "__init__" not in vars(cls)
    return not (cls.__name__ in _GIVEN or issubclass(cls, Enum) or is_error_below_the_root)


def _parameter(parameter: inspect.Parameter) -> str:
    stars = _STARS.get(parameter.kind.name, "")
    annotation = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}{annotation}{default}"


def _annotation(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value) if value is None or isinstance(value, (bool, int, float, str, tuple)) else "…"
