"""What a browser was tricked into sending is refused: another site's form changes nothing here (field case R74).

A browser attaches a cookie to whatever a page makes it send. So a change that is asked for with a cookie
carries two things that no other site can make it carry: the origin of our own pages, which the browser
writes itself, and a token that only our own pages show. A change that is asked for with a token in
`Authorization` needs neither: no browser attaches that.
"""

from __future__ import annotations

import hashlib
import hmac

from fastapi import Request
from starlette.datastructures import FormData, ImmutableMultiDict

from testigo.access.who import Via, Who
from testigo.errors import Forbidden
from testigo.web.security.cookies import login_secret
from testigo.web.security.place import as_origin, origin_of, settings_of

__all__ = ["CSRF_FIELD", "CSRF_HEADER", "SAFE", "csrf_of", "csrf_token", "refuse_forged", "sent_form"]

CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

_REMEDY = "Open the page again and repeat what you did there."


def csrf_token(request: Request) -> str:
    """What the forms of whoever is logged in carry: it follows from the login's secret and does not tell it."""
    return csrf_of(login_secret(request) or "")


async def refuse_forged(request: Request, who: Who | None) -> None:
    """Refuse (`Forbidden`) a change that a page of another site may have sent, on behalf of `who` or of nobody yet."""
    if request.method in SAFE or (who is not None and who.via is Via.TOKEN):
        return
    _check_origin(request)
    if who is not None:
        given = request.headers.get(CSRF_HEADER)
        if given is None:
            request.state.sent = await request.form()
            given = sent_form(request).get(CSRF_FIELD, "")
        if not hmac.compare_digest(given.encode(errors="surrogatepass"), csrf_token(request).encode()):
            raise Forbidden("The form's token is missing, or is not of this login.", field=CSRF_FIELD, remedy=_REMEDY)


def sent_form(request: Request) -> ImmutableMultiDict[str, str]:
    """The fields of the form by which whoever is logged in asks for a change; none where it was not read for that."""
    sent = getattr(request.state, "sent", FormData())
    return ImmutableMultiDict([(name, value) for name, value in sent.multi_items() if isinstance(value, str)])


def _check_origin(request: Request) -> None:
    """The page that sent this is one of ours.

    Behind a proxy that ends TLS and says nothing of it, the scheme is not known here, and the host has to do.
    """
    sender = request.headers.get("origin") or request.headers.get("referer") or ""
    origin, ours = as_origin(sender), origin_of(request)
    if not settings_of(request).public_url:
        origin, ours = origin.partition("://")[2], ours.partition("://")[2]
    if not origin or origin != ours:
        raise Forbidden(
            "The request does not come from a page of this installation.",
            field="origin",
            remedy=f"{_REMEDY} Behind a proxy, set public_url to where browsers find this panel.",
        )


def csrf_of(secret: str) -> str:
    """The same, of a login with this secret."""
    return hmac.new(secret.encode(), b"testigo csrf", hashlib.sha256).hexdigest()
