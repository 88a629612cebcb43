"""What `App.job` returns: the decorator that makes a function a handler, typed for both colours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from testigo.app.bound import AsyncHandler, Handler
from testigo.worker.context import AsyncContext, Context
from testigo.worker.handlers import HandlerSpec, Isolation

if TYPE_CHECKING:
    from testigo.app.application import App

__all__ = ["Registering"]

P = ParamSpec("P")
A = TypeVar("A")


class Registering:
    """The decorator that `App.job` returns: it makes a function a handler."""

    def __init__(
        self,
        app: App,
        kind: str,
        contract: Mapping[str, Any],
        isolation: Isolation,
        permanent_on: tuple[type[BaseException], ...],
    ) -> None:
        self._app = app
        self._kind = kind
        self._contract = contract
        self._isolation = isolation
        self._permanent_on = permanent_on

    @overload
    def __call__(
        self, function: Callable[Concatenate[AsyncContext, P], Coroutine[Any, Any, A]]
    ) -> AsyncHandler[P, A]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], A]) -> Handler[P, A]: ...

    def __call__(self, function: Callable[..., Any]) -> Any:
        """The handler that stands in the function's place."""
        spec = HandlerSpec(self._kind, self._contract["queue"], function, self._isolation, self._permanent_on)
        self._app.registry.add(spec)
        handler = AsyncHandler if spec.is_async else Handler
        return functools.update_wrapper(handler(self._app, spec, self._contract), function, updated=())
