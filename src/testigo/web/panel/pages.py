"""`render`: a template becomes a page, with the frame that every page has (panel.md *Pages and wireframes*).

A handler gives what its page is about. What every template may use besides: `t` (words), `pen` (numbers and
times), `url` and `here` (links), `who` and `may` (rights), `looks`, `csrf`, `static`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from testigo.access.roles import Right
from testigo.web.panel.charts import bar, sparkline
from testigo.web.panel.icons import STATES, icon
from testigo.web.panel.looks import COOKIE, Looks
from testigo.web.panel.refusals import meaning
from testigo.web.panel.words import Words, chosen_language, words_in
from testigo.web.panel.written import Written
from testigo.web.security.forgery import csrf_token
from testigo.web.security.place import prefix_of, settings_of

if TYPE_CHECKING:
    from testigo.access.who import Who

__all__ = ["ROOT", "STATIC", "here", "looks_of", "pen", "render", "url", "words"]

ROOT = "/horizon"
"""Where the panel is, below the prefix of a proxy if there is one."""

STATIC = Path(__file__).parent / "static"

Query = str | int | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Place:
    """A page of the navigation: its path below ROOT, its name, the key after `g`, and the right it needs."""

    path: str
    name: str
    key: str
    right: Right = Right.READ


NAVIGATION = (
    Place("", "Overview", "o"),
    Place("/jobs", "Jobs", "j"),
    Place("/failed", "Failed", "f"),
    Place("/queues", "Queues", "q"),
    Place("/kinds", "Kinds", "k"),
    Place("/workers", "Workers", "w"),
    Place("/events", "Events", "e"),
    Place("/analyses", "Analyses", "n"),
    Place("/projects", "Projects", "p"),
    Place("/operations", "Operations", "b"),
    Place("/audit", "Audit", "a", Right.AUDIT),
)

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.globals.update(bar=bar, icon=icon, meaning=meaning, sparkline=sparkline, states=STATES)


def render(
    request: Request,
    template: str,
    *,
    title: str,
    who: Who | None = None,
    topics: Sequence[str] = (),
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **facts: object,
) -> HTMLResponse:
    """The page of a template, within the frame.

    `title` is what the page calls itself: a sentence that is translated, or a name as it stands. `topics` are
    the signals upon which the page looks again at what it marks with `data-live`; without any it does not.
    Without `who` the frame has no navigation.
    """
    looks, t = looks_of(request), words(request)
    page = {
        "request": request,
        "who": who,
        "may": lambda right: who is not None and who.may(Right(right)),
        "title": t(title),
        "status": status,
        "topics": topics,
        "t": t,
        "looks": looks,
        "pen": pen(request),
        "url": lambda path, /, **query: url(request, path, **query),
        "here": lambda **query: here(request, **query),
        "static": lambda name: url(request, f"{ROOT}/static/{name}", v=_digest(name)),
        "places": _places(request, who),
        "csrf": csrf_token(request),
        "environment": settings_of(request).environment,
    }
    told = _environment.get_template(template).render(page | facts)
    return HTMLResponse(told, status, {"Content-Language": t.language, **(headers or {})})


def url(request: Request, path: str, /, **query: Query) -> str:
    """A link to a path of this site, below its prefix; what is None is left out of the query, a list is repeated."""
    asked = [
        (name, str(each))
        for name, value in query.items()
        if value is not None
        for each in ([value] if isinstance(value, str | int) else value)
    ]
    return prefix_of(request) + path + (f"?{urlencode(asked)}" if asked else "")


def here(request: Request, /, **query: Query) -> str:
    """A link to the page that was asked for, with this in its query in the place of what was; None takes it away."""
    kept: dict[str, list[str]] = {}
    for name, value in parse_qsl(request.url.query):
        kept.setdefault(name, []).append(value)
    return url(request, _path(request), **{**kept, **query})


def looks_of(request: Request) -> Looks:
    """How whoever asks wants the panel to look."""
    return Looks.of(request.cookies.get(COOKIE))


def words(request: Request) -> Words:
    """`t` in the language of whoever asks, for the modules that write sentences of their own."""
    return words_in(chosen_language(looks_of(request).language, request.headers.get("accept-language", "")))


def pen(request: Request) -> Written:
    """What writes numbers and times for whoever asks, for the modules that write some of their own."""
    return Written(words(request), looks_of(request), datetime.now(UTC))


def _places(request: Request, who: Who | None) -> list[dict[str, object]]:
    """The navigation of whoever asks: the pages that their role may see, and which of them this is."""
    if who is None:
        return []
    path = _path(request)
    return [
        {
            "href": url(request, ROOT + place.path),
            "name": place.name,
            "key": place.key,
            "badge": request.app.state.badge.count if place.path == "/failed" else None,
            "current": path.startswith(ROOT + place.path) if place.path else path.rstrip("/") == ROOT,
        }
        for place in NAVIGATION
        if who.may(place.right)
    ]


def _path(request: Request) -> str:
    """The path that was asked for, without the prefix."""
    return str(request.scope["path"]).removeprefix(request.scope.get("root_path", ""))


@cache
def _digest(name: str) -> str:
    """What tells this file's content from another's: its address may be kept for ever."""
    return sha256((STATIC / name).read_bytes()).hexdigest()[:12]
