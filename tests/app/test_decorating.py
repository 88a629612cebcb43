"""Making a function a handler: what stands in its place, and what is refused there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from testigo import App, AsyncContext, Context
from testigo.errors import Invalid, StateConflict
from tests.app.handlers import Handlers, Receipt


def test_a_handler_is_still_its_function(handlers: Handlers) -> None:
    """It has the function's name and documentation, and calling it calls the function, for tests without a database."""
    context: Any = None
    assert handlers.order.__name__ == "order"  # type: ignore[attr-defined]
    assert handlers.order.__doc__ == "Take an order."
    assert repr(handlers.order) == "AsyncHandler('order')"
    assert asyncio.run(handlers.order(context, 3, lines=["tea"])) == Receipt(3, ["tea"])
    partly = handlers.partly(context)
    assert not isinstance(partly, int)
    assert (partly.value, partly.limitations) == (7, ("the last line is missing",))


class Foreign:
    """Nothing that JSON could hold."""


def _unfit() -> list[Callable[..., Any]]:
    def takes_nothing() -> None: ...
    def takes_no_context(path: str) -> None: ...
    def takes_anything(ctx: Context, *_paths: str) -> None: ...
    def takes_any_name(ctx: Context, **_paths: str) -> None: ...
    def takes_by_place(ctx: Context, path: str, /) -> None: ...
    def says_nothing(ctx: Context, path) -> None: ...  # type: ignore[no-untyped-def]
    def says_no_context(ctx, path: str) -> None: ...  # type: ignore[no-untyped-def]
    def takes_the_other_colour(ctx: AsyncContext) -> None: ...
    async def awaits_the_other_colour(ctx: Context) -> None: ...
    def takes_what_json_has_not(ctx: Context, what: Foreign) -> None: ...
    def returns_what_json_has_not(ctx: Context) -> Foreign:
        return Foreign()

    async def yields(ctx: AsyncContext) -> AsyncIterator[int]:
        yield 1

    return [
        takes_nothing,
        takes_no_context,
        takes_anything,
        takes_any_name,
        takes_by_place,
        says_nothing,
        says_no_context,
        takes_the_other_colour,
        awaits_the_other_colour,
        takes_what_json_has_not,
        returns_what_json_has_not,
        yields,
    ]


@pytest.mark.parametrize("function", [*_unfit(), partial(print), print, "function", Foreign])
def test_a_function_whose_signature_does_not_say_enough_is_refused(app: App, function: Any) -> None:
    """Context first and of the right colour, then named arguments of types that JSON can hold (INVALID)."""
    with pytest.raises(Invalid) as refused:
        app.job("refused")(function)
    assert refused.value.field
    assert "refused" not in app.registry.kinds


def test_a_second_handler_of_a_kind_is_refused(app: App, handlers: Handlers) -> None:
    """The first one stays, and is named (STATE_CONFLICT)."""

    def again(ctx: Context) -> None: ...

    with pytest.raises(StateConflict, match="order"):
        app.job("order")(again)
    found = app.registry.get("order")
    assert found is not None
    assert found.function is not again


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("", {}, "kind"),
        ("a\nb", {}, "kind"),
        ("x" * 201, {}, "kind"),
        (7, {}, "kind"),
        ("k", {"queue": "a#b"}, "queue"),
        ("k", {"attempts": 1001}, "attempts"),
        ("k", {"timeout": -1}, "timeout_seconds"),
        ("k", {"timeout": float("inf")}, "timeout_seconds"),
        ("k", {"backoff": "exponential"}, "backoff"),
        ("k", {"crash_limit": 0}, "crash_limit"),
        ("k", {"delay_limit_seconds": -1}, "delay_limit_seconds"),
        ("k", {"priority": 0.5}, "priority"),
        ("k", {"isolation": "thread"}, "isolation"),
        ("k", {"permanent_on": (ValueError, "KeyError")}, "permanent_on[1]"),
    ],
)
def test_an_option_that_breaks_a_limit_is_refused(app: App, kind: Any, options: dict[str, Any], field: str) -> None:
    """Where the handler is made, so that no submission meets it later (INVALID)."""

    def work(ctx: Context) -> None: ...

    with pytest.raises(Invalid) as refused:
        app.job(kind, **options)(work)
    assert refused.value.field == field


@pytest.mark.parametrize("name", ["", "a\x00b", None, 7, "x" * 201])
def test_an_app_needs_a_name(name: Any) -> None:
    """It is the client of the App's submissions (INVALID)."""
    with pytest.raises(Invalid) as refused:
        App(name)
    assert refused.value.field == "app.name"


def test_naming_handlers_opens_nothing_and_loads_no_driver() -> None:
    """A runner loads the user's module: it starts fast, stays small, and has no way to a database."""
    done = subprocess.run([sys.executable, "-c", NAMING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", [])


NAMING = """
import sys
from testigo import App, AsyncContext, Degraded, Job, Permanent, Policy, State, encode

app = App("shop", "postgresql://nobody@127.0.0.1:1/nowhere")

@app.job("order")
async def order(ctx: AsyncContext, number: int) -> int | Degraded[int]:
    return number

order.options(key="k").new_job(number=1)
print(*({"sqlalchemy", "psycopg", "alembic", "asyncpg"} & set(sys.modules)))
"""


def test_every_public_name_is_there_and_is_found_where_the_types_say() -> None:
    """`testigo.__all__`, the table of homes and the imports for type checkers say the same."""
    import ast
    import inspect

    import testigo

    tree = ast.parse(inspect.getsource(testigo))
    checked = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("testigo.")
        for alias in node.names
    }
    assert checked == testigo._HOME
    assert sorted(checked) == sorted(testigo.__all__)
    assert set(testigo.__all__) <= set(dir(testigo))
    for name in testigo.__all__:
        assert getattr(testigo, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = testigo.nothing_of_the_kind
