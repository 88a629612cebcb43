"""The panel's own files: style, script and icon. Their addresses carry their content's digest, so they may be kept."""

from __future__ import annotations

from fastapi.responses import FileResponse

from testigo.errors import NotFound
from testigo.web.panel.pages import STATIC
from testigo.web.routes import Open, Routes

__all__ = ["routes"]

routes = Routes("/static", in_schema=False)

_TYPES = {"panel.css": "text/css", "panel.js": "text/javascript", "icon.svg": "image/svg+xml"}


@routes.get("/{name}", Open.STATIC)
def file(name: str) -> FileResponse:
    """One of them; nothing else of the folder, and nothing outside it."""
    if name not in _TYPES:
        raise NotFound(f"There is no file {name!r}.", field="name")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(STATIC / name, media_type=_TYPES[name], headers=headers)
