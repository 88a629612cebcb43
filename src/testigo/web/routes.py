"""The only way to add a route: each names the right that it needs, or why it needs none.

The guard of a route runs before the request's body is read, so that whoever may not is told only that.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.errors import Forbidden
from testigo.settings import LIMITS
from testigo.web.door import door_of, order
from testigo.web.security.forgery import SAFE, csrf_token, refuse_forged
from testigo.web.security.place import path_of
from testigo.web.who import find_caller

__all__ = ["Guarded", "Open", "Routes", "must"]

F = TypeVar("F", bound=Callable[..., Any])
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Open(StrEnum):
    """Why a route is open to everybody: nothing that it shows or does belongs to somebody."""

    LOGIN = "login"
    """How somebody becomes known: login, one-time link, the way back from another's login."""
    STATIC = "static"
    """Files of this release: style, script, icons."""
    HEALTH = "health"
    """That this process lives, without a word on what it holds."""


class Guarded(APIRoute):
    """A route with its guard: who asks, whether they may, and whether a browser was tricked into asking."""

    needs: ClassVar[Right | Open]

    def get_route_handler(self) -> _Handler:
        """The handler behind its guard."""
        handle = super().get_route_handler()
        needs = self.needs

        async def guarded(request: Request) -> Response:
            if isinstance(needs, Open):
                await refuse_forged(request, None)
            else:
                request.state.who = who = await find_caller(request)
                request.app.state.rate.count(who.credential)
                request.state.csrf = csrf_token(request)
                await refuse_forged(request, who)
                await must(request, who, needs)
                if request.method == "GET" and path_of(request).startswith("/horizon"):
                    await request.app.state.badge.look(door_of(request))
            return await handle(request)

        return guarded


async def must(request: Request, who: Who, needs: Right) -> None:
    """Refuse what the role has no right to (`Forbidden`); that somebody tried to change something is written down.

    For handlers whose request says which right it needs; the others' guards have asked already.
    """
    try:
        who.must(needs)
    except Forbidden as error:
        if request.method not in SAFE:
            path = quote(path_of(request))  # whatever was asked for, it is fit for the audit
            tried = order(request, who, needs, f"{request.method} {path}"[: LIMITS.name_chars_max], (), error.message)
            await door_of(request).write_down(tried, error)
        raise


class Routes:
    """Routes below a prefix.

        routes = Routes("/jobs", tags=["jobs"])

        @routes.get("/{job_id}", Right.READ)
        async def show(job_id: UUID, door: AtDoor, who: Caller) -> …

    Further options are those of FastAPI's `APIRouter`.
    """

    def __init__(self, prefix: str = "", *, tags: Sequence[str] = (), in_schema: bool = True) -> None:
        self.router = APIRouter(prefix=prefix, tags=list(tags), include_in_schema=in_schema)

    def get(self, path: str, needs: Right | Open, **options: Any) -> Callable[[F], F]:
        """A route that changes nothing."""
        return self._route("GET", path, needs, options)

    def post(self, path: str, needs: Right | Open, **options: Any) -> Callable[[F], F]:
        """A route that does something."""
        return self._route("POST", path, needs, options)

    def put(self, path: str, needs: Right | Open, **options: Any) -> Callable[[F], F]:
        """A route that sets something to what is sent."""
        return self._route("PUT", path, needs, options)

    def delete(self, path: str, needs: Right | Open, **options: Any) -> Callable[[F], F]:
        """A route that ends something."""
        return self._route("DELETE", path, needs, options)

    def include(self, *others: Routes) -> None:
        """These routes as well, below this prefix."""
        for each in others:
            self.router.include_router(each.router)

    def _route(self, method: str, path: str, needs: Right | Open, options: dict[str, Any]) -> Callable[[F], F]:
        if not isinstance(needs, Right | Open):
            raise TypeError(f"{method} {path} names no right")

        def added(handler: F) -> F:
            self.router.add_api_route(
                path, handler, methods=[method], route_class_override=_guarded_by(needs), **options
            )
            return handler

        return added


@cache
def _guarded_by(needs: Right | Open) -> type[Guarded]:
    """The class of the routes that need this; FastAPI makes the routes itself, so it is told by their class."""
    return type(f"Guarded_{needs.name}", (Guarded,), {"needs": needs})
