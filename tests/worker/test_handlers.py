"""A payload is the arguments of a handler by name: strict, exact, and the same on both ways (P-06)."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, Field, computed_field

from testigo.errors import Invalid, PayloadInvalid, PayloadTooLarge, StateConflict
from testigo.worker.context import AsyncContext, Context
from testigo.worker.endings import Degraded
from testigo.worker.handlers import HandlerSpec, Registry

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]  # it is nowhere


class Colour(enum.Enum):
    """A closed set of words."""

    RED = "red"


class Clip(BaseModel):
    """A model with an alias, a computed field and itself inside."""

    at: int
    speed: float = Field(default=1.0, alias="factor")
    parts: list[Clip] = []

    @computed_field  # type: ignore[prop-decorator]  # the decorator is made for properties
    @property
    def twice(self) -> int:
        """Computed, so it is in no document."""
        return self.at * 2


@dataclasses.dataclass
class Pair:
    """A plain dataclass."""

    left: int
    right: tuple[str, float] = ("a", 0.5)


async def everything(
    ctx: AsyncContext,
    json: str,
    model_config: Clip,
    self: Pair,
    _id: uuid.UUID,
    when: datetime,
    cost: Decimal,
    colour: Colour,
    numbers: dict[int, float],
    later: Later | None = None,
    height: int = 720,
    *,
    data: bytes = b"",
) -> Clip | Degraded[Clip]:
    """A handler with names and types that are easily mishandled."""
    raise NotImplementedError


EVERYTHING = HandlerSpec("everything", "default", everything)


class Later(BaseModel):
    """Named by a handler that stands above it."""

    n: int


ARGUMENTS: dict[str, Any] = {
    "json": "é\u2028",
    "model_config": Clip(at=1, factor=2, parts=[Clip(at=2)]),
    "self": Pair(2**70),
    "_id": uuid.UUID(int=7),
    "when": datetime(2026, 1, 1, tzinfo=UTC),
    "cost": Decimal("1.50"),
    "colour": Colour.RED,
    "numbers": {1: 0.1},
    "later": Later(n=3),
}


def spec(function: Callable[..., Any], **options: Any) -> HandlerSpec:
    """The handler of the kind `a`."""
    return HandlerSpec("a", "default", function, **options)


def test_arguments_of_any_name_and_type_come_back_equal() -> None:
    """What is submitted is what the handler gets."""
    payload = EVERYTHING.encode(ARGUMENTS)
    assert "twice" not in payload
    assert Clip(at=2).twice == 4
    assert EVERYTHING.decode(payload) == ARGUMENTS


def test_what_is_left_out_is_left_to_the_function() -> None:
    """Defaults are not part of a payload."""

    def add(ctx: Context, a: int = 1, b: int = 2) -> int:
        return a + b

    adding = spec(add)
    for empty in ("{}", "null"):
        assert adding.decode(empty) == {}
    assert adding.decode(adding.encode({"b": 5})) == {"b": 5}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"json": 5}, "payload.json"),
        ({"height": "720"}, "payload.height"),
        ({"height": True}, "payload.height"),
        ({"unknown": 1}, "payload.unknown"),
        ({"self": {"left": 1}}, "payload.self"),
        ({"numbers": {1: float("nan")}}, 'payload.numbers["1"]'),
        ({"model_config": Clip(at=1, factor=float("inf"))}, "payload.model_config.factor"),
        ({"json": "\x00"}, "payload.json"),
        ({"json": "\ud800"}, "payload.json"),
        ({"data": b"\xff"}, "payload"),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    """Nothing is converted, and nothing is lost on the way."""
    with pytest.raises(PayloadInvalid) as refused:
        EVERYTHING.encode({**ARGUMENTS, **change})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ('{"n":1.0}', "payload.n"),
        ('{"n":"1"}', "payload.n"),
        ('{"n":1,"m":2}', "payload.m"),
        ("{}", "payload.n"),
        ("null", "payload.n"),
        ("[1]", "payload"),
        ('{"n":NaN}', "payload.n"),
    ],
)
def test_a_payload_of_another_shape_is_refused_by_name(payload: str, field: str) -> None:
    """A payload that anybody may have submitted is checked as strictly."""

    def handler(ctx: Context, n: int) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        spec(handler).decode(payload)
    assert refused.value.field == field


def test_a_refusal_tells_no_value() -> None:
    """Values may be secret; names are enough."""

    def handler(ctx: Context, password: int) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        spec(handler).decode('{"password":"hunter2"}')
    assert "hunter2" not in str(refused.value)


def test_a_payload_that_is_too_large_names_blobs() -> None:
    """The remedy is in the refusal."""

    def handler(ctx: Context, text: str) -> None: ...

    with pytest.raises(PayloadTooLarge, match="blob"):
        spec(handler).encode({"text": "x" * 300_000})


def test_arguments_by_position_get_their_names() -> None:
    """A call is bound as the function would bind it behind its context."""
    assert EVERYTHING.bind() == {}
    assert EVERYTHING.bind("x", height=5) == {"json": "x", "height": 5}
    with pytest.raises(PayloadInvalid, match="twice"):
        EVERYTHING.bind("x", json="y")
    with pytest.raises(PayloadInvalid, match="12 arguments"):
        EVERYTHING.bind(*range(12))


def test_an_output_comes_back_as_the_return_type_says() -> None:
    """An output of another type is refused."""
    clip = Clip(at=1, parts=[Clip(at=2)])
    assert EVERYTHING.decode_output(EVERYTHING.encode_output(clip)) == clip
    for wrong in (None, 5, {"at": "1"}):
        with pytest.raises(PayloadInvalid):
            EVERYTHING.encode_output(wrong)
    with pytest.raises(PayloadInvalid):
        EVERYTHING.encode_output(Clip.model_construct(at="no"))


def test_a_handler_that_promises_no_type_may_return_what_json_can_hold() -> None:
    """NaN is refused there too, and does not become null."""

    def handler(ctx: Context):  # type: ignore[no-untyped-def]  # this is the point
        raise NotImplementedError

    for value in (None, 1, "a", [1, {"b": None}]):
        assert spec(handler).decode_output(spec(handler).encode_output(value)) == value
    for odd in (object(), float("nan"), {"a": [float("inf")]}, print, "\ud800"):
        with pytest.raises(PayloadInvalid):
            spec(handler).encode_output(odd)


@pytest.mark.parametrize(
    ("returned", "value"), [(Degraded, {"a": 1}), (Degraded[int], 3), (int | Degraded[str] | None, "b")]
)
def test_a_degraded_output_is_its_value(returned: Any, value: object) -> None:
    """The type of a degraded output is that of the value in it."""

    def handler(ctx: Context) -> Any:
        raise NotImplementedError

    handler.__annotations__["return"] = returned
    assert spec(handler).decode_output(spec(handler).encode_output(value)) == value


class Opaque:
    """A class of which pydantic knows nothing."""


def in_thread_with_the_loops(ctx: AsyncContext) -> None:
    """Not async."""


async def on_loop_with_the_threads(ctx: Context) -> None:
    """Async."""


def without_any() -> None:
    """No context."""


def with_something_else(n: int) -> None:
    """No context, but an argument."""


def with_stars(ctx: Context, *names: str) -> None:
    """Arguments without names."""


def with_more_stars(ctx: Context, **names: str) -> None:
    """Arguments of any name."""


def without_annotation(ctx: Context, n) -> None:  # type: ignore[no-untyped-def]
    """An argument of any type."""


def by_position_only(ctx: Context, n: int, /) -> None:
    """An argument without a name."""


def context_by_name(*, ctx: Context) -> None:
    """A context that cannot be passed first."""


def opaque_argument(ctx: Context, n: Opaque) -> None:
    """An argument that no JSON makes."""


def opaque_output(ctx: Context) -> Opaque:  # type: ignore[empty-body]
    """An output that makes no JSON."""


def generator(ctx: Context) -> Any:
    """Many outputs."""
    yield 1


@pytest.mark.parametrize(
    ("function", "field"),
    [
        (in_thread_with_the_loops, "ctx"),
        (on_loop_with_the_threads, "ctx"),
        (without_any, "function"),
        (with_something_else, "n"),
        (with_stars, "names"),
        (with_more_stars, "names"),
        (without_annotation, "n"),
        (by_position_only, "n"),
        (context_by_name, "ctx"),
        (opaque_argument, "n"),
        (opaque_output, "output"),
        (generator, "function"),
        (Opaque, "function"),
        (print, "function"),
    ],
)
def test_a_function_of_another_shape_is_no_handler(function: Callable[..., Any], field: str) -> None:
    """The refusal comes at decoration and names the parameter."""
    with pytest.raises(Invalid) as refused:
        spec(function)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"kind": ""}, "kind"),
        ({"queue": "a#1"}, "queue"),
        ({"isolation": "none"}, "isolation"),
        ({"permanent_on": [ValueError, 5]}, "permanent_on[1]"),
        ({"permanent_on": ValueError}, "permanent_on"),
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, Any], field: str) -> None:
    """The refusal comes at decoration."""

    def handler(ctx: Context) -> None: ...

    with pytest.raises(Invalid) as refused:
        HandlerSpec(**{"kind": "a", "queue": "default", "function": handler, **options})
    assert refused.value.field == field


def test_a_type_that_is_nowhere_is_told_when_it_is_needed() -> None:
    """A runner looks before it says hello."""

    def handler(ctx: Context, n: Unknown) -> None: ...

    with pytest.raises(NameError, match="Unknown"):
        spec(handler).prepare()


def test_a_kind_has_one_handler() -> None:
    """A second one is refused."""

    def handler(ctx: Context) -> None: ...

    registry = Registry()
    registry.add(spec(handler))
    with pytest.raises(StateConflict, match="'a'"):
        registry.add(spec(handler))
    assert registry.kinds == ("a",)
    assert registry.get("b") is None
    assert [each.kind for each in registry] == ["a"]
