"""Which function runs a kind of job, and how its arguments and its output become documents.

The payload of a job is the JSON object of its handler's arguments by name. What is left out takes the
default of the handler's signature when the job runs, not when it is submitted.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, GetCoreSchemaHandler
from pydantic_core import core_schema

from testigo.errors import Invalid, PayloadInvalid, StateConflict
from testigo.rules import fields
from testigo.rules.documents import Document
from testigo.worker.context import AsyncContext, Context
from testigo.worker.endings import Degraded
from testigo.worker.hello import PUBLISHED_KINDS
from testigo.worker.values import NULL, Shape

__all__ = ["HandlerSpec", "Isolation", "Registry"]

Isolation = Literal["shared", "process", "publisher"]
"""Whether runs of a kind share a runner with others, or each gets a process of its own.

Those of `publisher` are the engine's own, and run in the worker's publisher (spec P-30).
"""

_CONFIG = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
_CONTEXTS = {"Context": Context, "AsyncContext": AsyncContext}


@dataclass(frozen=True)
class HandlerSpec:
    """A kind of job and the function that runs it.

    The function's first parameter is its context: `AsyncContext` for a coroutine, `Context` for any other,
    which runs in a thread. All others are arguments with types that pydantic can read from JSON. Raises
    `Invalid` for a function of any other shape; a type that its module names only later is looked up when
    it is first needed.
    """

    kind: str
    queue: str
    function: Callable[..., Any]
    isolation: Isolation = "shared"
    permanent_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        fields.name(self.kind, field="kind")
        fields.name(self.queue, field="queue")
        if "#" in self.queue:
            raise Invalid("A queue's name has no '#': it marks the stripes of a queue.", field="queue")
        if self.isolation not in get_args(Isolation):
            raise Invalid("The isolation is not known.", field="isolation", limit=", ".join(get_args(Isolation)))
        if self.isolation == "publisher" and self.kind not in PUBLISHED_KINDS:
            raise Invalid("A publisher runs nothing but the engine's own kinds.", field="isolation")
        fields.sequence(self.permanent_on, field="permanent_on", most=100)
        for at, each in enumerate(self.permanent_on):
            given: object = each
            if not isinstance(given, type) or not issubclass(given, BaseException):
                raise Invalid("A class of exceptions is needed.", field=f"permanent_on[{at}]")
        _check_shape(self.function)
        try:
            self.prepare()
        except NameError:
            return

    def prepare(self) -> None:
        """Look up every type that the signature names. Raises `NameError` for a name that its module lacks."""
        _check_context(self.function, self._hints[_parameters(self.function)[0].name])
        _ = self.arguments, self.output

    @cached_property
    def is_async(self) -> bool:
        """Whether the handler is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    @cached_property
    def arguments(self) -> Shape:
        """The form of the payload: the arguments by name, none beyond the signature."""
        parameters = _parameters(self.function)[1:]
        for each in parameters:  # each on its own first, so that the refusal names the argument
            Shape(self._hints[each.name], field=each.name)
        members = {each.name: self._hints[each.name] for each in parameters}
        required = frozenset(each.name for each in parameters if each.default is each.empty)
        return Shape(Annotated[dict[str, Any], _Arguments(members, required)], field="payload", config=_CONFIG)

    @cached_property
    def output(self) -> Shape:
        """The form of the output: of `R | Degraded[R]`, the R."""
        return Shape(self._returned, field="output")

    def decode(self, payload: str) -> dict[str, Any]:
        """The arguments that a payload holds; those left out are left to the function's defaults.

        Raises `PayloadInvalid`, naming the argument, for any that is missing, unknown or not of its type.
        """
        arguments: dict[str, Any] = self.arguments.read("{}" if payload == "null" else payload)
        return arguments

    def encode(self, arguments: Mapping[str, Any]) -> Document:
        """The payload of these arguments, checked as strictly as when it is decoded.

        Raises `PayloadInvalid`, naming the argument, and `PayloadTooLarge`.
        """
        return self.arguments.write(dict(arguments))

    def bind(self, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments by name, from a call of the function without its context. Raises `PayloadInvalid`."""
        if not args:
            return kwargs
        if len(args) > len(self._positional):
            raise PayloadInvalid(
                f"{len(args)} arguments are given by position.",
                field="payload",
                limit=f"{len(self._positional)} arguments",
                remedy="Give the others by name.",
            )
        given = dict(zip(self._positional, args, strict=False))
        for name in given.keys() & kwargs.keys():
            raise PayloadInvalid("The argument is given twice.", field=f"payload.{name}", remedy="Give it once.")
        return given | kwargs

    def encode_output(self, value: object) -> Document:
        """The output of a handler that returned this value. Raises `PayloadInvalid` or `PayloadTooLarge`."""
        if value is None and self._returns_null:
            return NULL
        return self.output.write(value)

    def decode_output(self, output: str) -> Any:
        """The value that an output holds, of the handler's return type. Raises `PayloadInvalid`."""
        return self.output.read(output)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        """The annotations, looked up where the function was written; its context may be imported for types only."""
        written = inspect.unwrap(self.function)
        return get_type_hints(written, globalns={**_CONTEXTS, **written.__globals__}, include_extras=True)

    @cached_property
    def _positional(self) -> tuple[str, ...]:
        """The arguments that may be given by position."""
        return tuple(each.name for each in _parameters(self.function)[1:] if each.kind != each.KEYWORD_ONLY)

    @cached_property
    def _returned(self) -> Any:
        return _undegraded(self._hints.get("return", Any))

    @cached_property
    def _returns_null(self) -> bool:
        return self._returned in (None, type(None), Any)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The schema of arguments by name: a dictionary, so that any name that Python takes is fit for an argument."""

    members: Mapping[str, Any]
    required: frozenset[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.typed_dict_schema(
            {
                name: core_schema.typed_dict_field(handler.generate_schema(annotation), required=name in self.required)
                for name, annotation in self.members.items()
            },
            extra_behavior="forbid",
        )


class Registry:
    """The handlers of an application, one for each kind."""

    def __init__(self) -> None:
        self._specs: dict[str, HandlerSpec] = {}

    def add(self, spec: HandlerSpec) -> None:
        """Take a handler in. Raises `StateConflict` for a second one of the same kind."""
        if spec.kind in self._specs:
            raise StateConflict(
                f"The kind {spec.kind!r} has a handler already: {self._specs[spec.kind].function.__qualname__}.",
                field="kind",
                remedy="Give every handler a kind of its own.",
            )
        self._specs[spec.kind] = spec

    def get(self, kind: str) -> HandlerSpec | None:
        """The handler of a kind, or None."""
        return self._specs.get(kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds, in the order of their handlers."""
        return tuple(self._specs)

    def __iter__(self) -> Iterator[HandlerSpec]:
        return iter(self._specs.values())


def _check_shape(function: Callable[..., Any]) -> None:
    if not inspect.isfunction(function):
        raise Invalid("A handler is a function or a coroutine function.", field="function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Invalid("A handler returns its output; a generator yields many.", field="function")
    parameters = _parameters(function)
    if not parameters:
        raise Invalid(
            "The first parameter of a handler is its context.",
            field="function",
            limit=f"{_colour(function).__name__} first",
        )
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Invalid("A handler names each of its arguments.", field=parameter.name, limit="no *args, no **kwargs")
        if parameter.annotation is parameter.empty:
            raise Invalid(
                "The parameter has no annotation.",
                field=parameter.name,
                remedy="Annotate it: its type is the contract.",
            )
    if parameters[0].kind == inspect.Parameter.KEYWORD_ONLY:
        raise Invalid("The context is passed by position.", field=parameters[0].name)
    for parameter in parameters[1:]:
        if parameter.kind == parameter.POSITIONAL_ONLY:
            raise Invalid("Arguments are passed by name.", field=parameter.name, limit="no positional-only argument")


def _check_context(function: Callable[..., Any], annotation: Any) -> None:
    colour = _colour(function)
    if annotation is not colour:
        raise Invalid(
            f"The first parameter of {'a coroutine' if colour is AsyncContext else 'a handler that runs in a thread'} "
            f"is its {colour.__name__}, and this one is not annotated so.",
            field=_parameters(function)[0].name,
            limit=colour.__name__,
            remedy="An async def takes an AsyncContext, a def takes a Context.",
        )


def _colour(function: Callable[..., Any]) -> type[Context | AsyncContext]:
    return AsyncContext if inspect.iscoroutinefunction(function) else Context


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters, their annotations not looked at."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return list(inspect.signature(function, annotation_format=Format.FORWARDREF).parameters.values())
    return list(inspect.signature(function).parameters.values())


def _undegraded(annotation: Any) -> Any:
    """The type of the value in `R | Degraded[R]`."""
    if annotation is Degraded:
        return Any
    origin = get_origin(annotation)
    if origin is Degraded:
        return get_args(annotation)[0]
    if origin is Union or origin is types.UnionType:
        plain = tuple(dict.fromkeys(_undegraded(each) for each in get_args(annotation)))
        return Union[plain]  # noqa: UP007  # it is a tuple, made here
    return annotation
