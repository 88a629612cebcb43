"""Where browsers find this installation: as the setting `public_url` says, else where it was asked."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from testigo.settings import Web

__all__ = ["as_origin", "is_secure", "origin_of", "path_of", "prefix_in", "prefix_of", "settings_of", "url"]

_PORTS = {"http": 80, "https": 443}


def settings_of(request: Request) -> Web:
    """The settings of the server that was asked."""
    found: Web = request.app.state.settings
    return found


def prefix_in(public_url: str) -> str:
    """What stands before `/horizon` and `/api` where browsers ask: it begins with a slash and ends in none."""
    return urlsplit(public_url).path.rstrip("/")


def prefix_of(request: Request) -> str:
    """The same for the server that was asked."""
    return str(request.scope.get("root_path", ""))


def url(request: Request, path: str) -> str:
    """The link to a path of ours, `/horizon/jobs`, as a browser has to write it."""
    return prefix_of(request) + path


def path_of(request: Request) -> str:
    """The path that was asked for, as our routes know it: without the prefix, whether or not a proxy took that away."""
    path, prefix = str(request.scope["path"]), prefix_of(request)
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path


def is_secure(request: Request) -> bool:
    """Whether browsers come by https."""
    public = settings_of(request).public_url
    return (urlsplit(public).scheme if public else request.url.scheme) == "https"


def origin_of(request: Request) -> str:
    """The scheme, host and port of our own pages, as a browser writes an origin.

    Without `public_url` the host is what the request names, and the scheme what the server knows.
    """
    public = settings_of(request).public_url
    return as_origin(public or f"{request.url.scheme}://{request.headers.get('host', '')}")


def as_origin(address: str) -> str:
    """The origin of a URL: lower case, without the port that its scheme implies. Empty for what has none."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _PORTS[parts.scheme]) else f":{port}")
