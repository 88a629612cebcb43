"""After a form was refused: the way back to its page, and what can be sent once more as it was.

The page that had the form is known by the Referer alone, and it is gone to only if it is one of this panel. The reason
that was typed goes with it. Nobody is given a password back.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import Request
from fastapi.routing import iter_route_contexts

from testigo.rules.text import tidy
from testigo.web.panel.login import place_of
from testigo.web.security.forgery import CSRF_FIELD, SAFE, sent_form
from testigo.web.security.place import path_of, prefix_of

__all__ = ["form_page", "sent_again"]

_PASSWORDS = frozenset({"password", "old", "new", "again"})
_REASON_CHARS_MAX = 1_000


def form_page(request: Request) -> str | None:
    """The address of the page from which a change was asked for; None where that is not known, or was no change.

    A form that was shown once more, with what was wrong with it, has the address that it was sent to: where that
    answers no GET, its page is not known.
    """
    if request.method in SAFE:
        return None
    try:
        referer = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    back = referer.path + (f"?{referer.query}" if referer.query else "")
    if not referer.path or place_of(request, back) != back:
        return None
    if referer.path == prefix_of(request) + path_of(request) and not _answers_get(request):
        return None
    reason = tidy(sent_form(request).get("reason", "")[:_REASON_CHARS_MAX])
    kept = [pair for pair in parse_qsl(referer.query) if pair[0] != "reason" or not reason]
    asked = urlencode([*kept, ("reason", reason)] if reason else kept)
    return referer.path + (f"?{asked}" if asked else "")


def sent_again(request: Request) -> list[tuple[str, str]]:
    """What the form sent, to be sent once more as the same order; nothing where a password was in it."""
    sent = sent_form(request)
    return [] if _PASSWORDS & set(sent) else [pair for pair in sent.multi_items() if pair[0] != CSRF_FIELD]


def _answers_get(request: Request) -> bool:
    """Whether the address that this change was sent to is one of a page as well."""
    mine = request.scope.get("route")
    routes = list(iter_route_contexts(request.app.routes))
    paths = {context.path for context in routes if context.original_route is mine}
    return any(context.path in paths and "GET" in (context.methods or ()) for context in routes)
