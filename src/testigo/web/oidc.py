"""Logging in by somebody else's login page (OpenID Connect), where `oidc_issuer` names whose.

The issuer says who somebody is, by the claim `oidc_name_claim`, and what they are, by `oidc_role_claim`: a role
that changed there is changed here at the next login. Their names end in the issuer's host, so that nobody who can
choose a name there becomes somebody who was added here. Whom a login adds or changes has a row of the audit, as the
issuer's doing.

The way there and back is bound to the browser by a cookie that lasts ten minutes, to this login by `state`, `nonce`
and PKCE. Coming back is the one GET that changes something, a new login, as the protocol wants it.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx
from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from testigo.access.act import Order, act
from testigo.access.logins import log_in
from testigo.access.names import spelled
from testigo.access.roles import Right, Role
from testigo.access.secret import Secret, digest_of
from testigo.access.users import Known, add_user, known, set_role
from testigo.access.who import Via, Who
from testigo.errors import Busy, Forbidden, NotFound, StateConflict, Unauthenticated
from testigo.rules import fields
from testigo.settings import Web
from testigo.store.command import savepoint
from testigo.web.door import AtDoor, order
from testigo.web.panel.login import place_of
from testigo.web.routes import Open, Routes
from testigo.web.security.cookies import set_login
from testigo.web.security.place import is_secure, origin_of, settings_of, url

__all__ = ["routes"]

_log = logging.getLogger("testigo.web")

COOKIE = "testigo_oidc"
COOKIE_SECONDS = 600
_BACK = "/horizon/login/oidc/back"

_STRANGE = re.compile(r"[^a-z0-9._@+-]")
_TOLD_APART_DIGITS = 16
_TOLD_APART = re.compile(rf"\+[0-9a-f]{{{_TOLD_APART_DIGITS}}}$")
"""What a name ends in that is written otherwise there than names are here."""

routes = Routes("/horizon/login", in_schema=False)


@routes.get("/oidc", Open.LOGIN)
async def go(request: Request, back: str = "") -> Response:
    """Send the browser to the issuer's login page."""
    issuer = _issuer(request)
    try:
        asked = await issuer.create_authorization_url(_own_address(request))
    except Exception as error:  # whatever is wrong with it
        raise _unreachable(error) from error
    kept = {name: asked[name] for name in ("state", "nonce", "code_verifier")} | {"back": back[:2_000]}
    answer = RedirectResponse(asked["url"], status_code=303)
    answer.set_cookie(
        COOKIE,
        json.dumps(kept).encode().hex(),
        max_age=COOKIE_SECONDS,
        path=url(request, _BACK),
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return answer


@routes.get("/oidc/back", Open.LOGIN)
async def come_back(request: Request, door: AtDoor, code: str = "", state: str = "") -> Response:
    """Log in whoever comes back from there with what they were sent with."""
    kept = _kept(request)
    begun = kept.get("state", "").encode(errors="surrogatepass")
    if not code or not hmac.compare_digest(begun, state.encode(errors="surrogatepass")) or not state:
        raise Unauthenticated("This login was not begun on this browser, or took too long.", remedy="Begin again.")
    claims = await _claims(request, code, kept)
    settings = settings_of(request)
    name, role = _name(claims, settings), _role(claims, settings)
    issuer = Who(_host(settings), Role.ADMIN, Via.OIDC)
    secret, asked = Secret.new(), order(request, issuer, Right.MANAGE, "users.add", (f"user:{name}",), "")
    await door.run(_let_in, name, role, secret.digest, asked, digest_of(f"oidc {state}"))
    answer = RedirectResponse(place_of(request, kept.get("back", "")), status_code=303)
    set_login(request, answer, secret.text)
    answer.delete_cookie(COOKIE, path=url(request, _BACK), secure=is_secure(request), httponly=True, samesite="lax")
    return answer


def _let_in(c: Connection, name: str, role: Role, digest: str, asked: Order, state: str) -> None:
    """Log in this user of the issuer's with the role that they have there, whom nobody need have added here.

    What they came back with, by the digest of its `state`, lets nobody in again, though the issuer should allow it.
    """
    found = known(c, name) or _added(c, name, role, asked)
    epoch = found.epoch
    if found.role != role:
        changing = replace(asked, what="users.role")
        epoch = act(c, changing, lambda c: set_role(c, name, role, issuer_says=True, action=changing.action)).epoch
    log_in(c, name, digest, epoch=epoch, once=state)  # no try was counted, so none is taken back


def _added(c: Connection, name: str, role: Role, asked: Order) -> Known:
    """The user who was not known, added now: by us, or by another browser of theirs that was quicker."""
    with suppress(StateConflict), savepoint(c):
        act(c, asked, lambda c: add_user(c, name, role, None, action=asked.action))
    found = known(c, name)
    if found is None:
        raise Unauthenticated(f"The user {name} is disabled here.", remedy="Ask an administrator.")
    return found


async def _claims(request: Request, code: str, kept: Mapping[str, str]) -> Mapping[str, Any]:
    """What the issuer says of whoever it sent back: its signature, its audience and its time are checked."""
    issuer, settings = _issuer(request), settings_of(request)
    try:
        token = await issuer.fetch_access_token(
            redirect_uri=_own_address(request), code=code, code_verifier=kept.get("code_verifier", "")
        )
        claims = await issuer.parse_id_token(
            token,
            nonce=kept.get("nonce", ""),
            claims_options={
                "iss": {"essential": True, "values": [settings.oidc_issuer]},
                "aud": {"essential": True, "values": [settings.oidc_client_id]},
            },
        )
    except httpx.HTTPError as error:
        raise _unreachable(error) from error
    except Exception as error:  # whatever is wrong with an answer from outside, nobody is logged in by it
        _log.warning("an answer of the OIDC issuer was refused: %s", type(error).__name__)
        raise Unauthenticated("The issuer's answer is not valid.", remedy="Begin again.") from error
    if not claims:
        raise Unauthenticated("The issuer did not say who you are.", remedy="Begin again.")
    return dict(claims)


def _name(claims: Mapping[str, Any], settings: Web) -> str:
    """The user that the issuer means.

    To it names that differ in their case, or in signs that names have none of here (`auth0|5f7c…`), are two, and so
    they are here.
    """
    called = fields.name(claims.get(settings.oidc_name_claim), field=settings.oidc_name_claim)
    kept = _STRANGE.sub("-", called.lower())
    if not kept[0].isalnum():
        kept = f"x{kept}"
    if kept != called or _TOLD_APART.search(kept):
        kept += f"+{sha256(called.encode()).hexdigest()[:_TOLD_APART_DIGITS]}"
    return spelled(f"{kept}@{_host(settings)}", field=settings.oidc_name_claim)


def _host(settings: Web) -> str:
    return urlsplit(settings.oidc_issuer).hostname or ""


def _role(claims: Mapping[str, Any], settings: Web) -> Role:
    given = claims.get(settings.oidc_role_claim)
    named = {each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str)}
    roles = [role for role in Role if role in named]
    if len(roles) != 1:
        raise Forbidden(
            "The issuer gives you no role here, or several.",
            field=settings.oidc_role_claim,
            limit=", ".join(Role),
            remedy="Ask whoever manages your logins there.",
        )
    return roles[0]


def _issuer(request: Request) -> Any:
    """The client of the issuer, which has read what that says of itself; it is kept with the application."""
    settings, state = settings_of(request), request.app.state
    if not settings.oidc_issuer:
        raise NotFound("No other login than our own is set up here.", remedy="See the setting oidc_issuer.")
    if not hasattr(state, "oidc"):
        from authlib.deprecate import AuthlibDeprecationWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AuthlibDeprecationWarning)  # it would rather find another HTTP client
            from authlib.integrations.starlette_client import StarletteOAuth2App
        state.oidc = StarletteOAuth2App(
            None,
            name="oidc",
            client_id=settings.oidc_client_id,
            client_secret=settings.oidc_client_secret or None,
            server_metadata_url=f"{settings.oidc_issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": "openid profile",
                "code_challenge_method": "S256",
                "timeout": settings.read_seconds,
            },
        )
    return state.oidc


def _own_address(request: Request) -> str:
    return origin_of(request) + url(request, _BACK)


def _kept(request: Request) -> Mapping[str, str]:
    """What this browser was sent away with; nothing if that cannot be read."""
    try:
        kept = json.loads(bytes.fromhex(request.cookies.get(COOKIE, "")))
    except (ValueError, RecursionError):  # anybody may write into it what they like
        return {}
    return {name: value for name, value in kept.items() if isinstance(value, str)} if isinstance(kept, dict) else {}


def _unreachable(error: Exception) -> Busy:
    _log.warning("the OIDC issuer could not be asked: %s", type(error).__name__)
    return Busy("The issuer of logins does not answer as it should.", remedy="Try again in a moment.")
