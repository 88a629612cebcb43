"""Where a finding is: a URI or a raw path, made one canonical relative path inside the root, or refused.

Tools write places as URIs, as raw paths, and as raw paths where a URI belongs (spec D-14; field case R81).
A canonical path has `/` between its names, no empty name, `.` or `..`, no drive and no control character, and is
at most 4,096 bytes of UTF-8; its letters are kept as they are. It is made lexically: whoever opens the file
sees to links. `path_vectors.json`, shipped beside this module, publishes what every reading must reach.

How a URI is read, and what is made of one that is none:

- `%41` is decoded once, as UTF-8. With a `%` that begins no escape, the text was never encoded and is taken as it is.
- `#` and `?` belong to the name: a file has neither fragment nor query, and to drop them would make two files one.
- `\\` separates, for no URI has one; an encoded one is a letter of the name, as in a raw path, unless the root is
  on a drive, where it separates always.
- `C:\\a` and `file://C:/a` are paths on a drive. `file://localhost/a` is `/a`; any other host is refused.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from testigo.errors import EvidenceInvalid
from testigo.settings import EVIDENCE

__all__ = ["PathFault", "of_path", "of_uri", "to_uri", "why_not_canonical"]

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class PathFault(StrEnum):
    """Why a place is refused: the fact `reason` of the error."""

    NOT_TEXT = "not_text"
    """It is no text, or its escapes are not UTF-8."""
    EMPTY = "empty"
    """It names nothing."""
    CONTROL = "control"
    """It has a control character, a line separator or a lone surrogate."""
    TOO_LONG = "too_long"
    """It is longer than any path."""
    FOREIGN = "foreign"
    """It is a URI of another scheme: no file."""
    HOST = "host"
    """It is on another machine, or on a share."""
    DRIVE = "drive"
    """It is relative to a drive's own folder, or a name looks like a drive."""
    OUTSIDE = "outside"
    """It is outside the root."""
    ROOT = "root"
    """It is the root itself, which is no file."""


class _Place(NamedTuple):
    """Names to walk: from the top of `drive` where `absolute`, else from where one stands."""

    drive: str
    absolute: bool
    names: tuple[str, ...]


def of_uri(uri: object, *, root: str, base: str = "", field: str = "uri") -> str:
    """The canonical path of the file that `uri` names.

    `root` is the absolute raw path of the folder that was scanned, such as `/work/shop` or `C:\\work`. `base` is
    the URI of the folder that a relative one starts from, its base ids resolved; by default the root. Raises
    `EvidenceInvalid`, whose fact `reason` is a `PathFault`.
    """
    top = _top(root)
    start = _join(top, _uri(base, top, f"{field}.base")) if base else top
    return _inside(top, _join(start, _uri(uri, top, field)), field)


def of_path(path: object, *, root: str, base: str = "", field: str = "path") -> str:
    """The canonical path of the file that the raw `path` names; `root`, `base` (a raw path) and errors as `of_uri`."""
    top = _top(root)
    start = _join(top, _raw(_text(base, f"{field}.base"), top, f"{field}.base")) if base else top
    return _inside(top, _join(start, _raw(_text(path, field), top, field)), field)


def to_uri(path: str) -> str:
    """A canonical path as a relative URI: `of_uri` reads the same path from it."""
    return quote(path, safe="/")


def why_not_canonical(path: object) -> PathFault | None:
    """Why this is no canonical path, or None for one that is."""
    if not isinstance(path, str):
        return PathFault.NOT_TEXT
    if not path:
        return PathFault.EMPTY
    if _UNFIT.search(path):
        return PathFault.CONTROL
    if len(path) > EVIDENCE.path_bytes_max or len(path.encode()) > EVIDENCE.path_bytes_max:
        return PathFault.TOO_LONG
    if _DRIVE.match(path):
        return PathFault.DRIVE
    if "" in (names := path.split("/")) or "." in names or ".." in names:
        return PathFault.OUTSIDE
    return None


def _uri(value: object, top: _Place, field: str) -> _Place:
    """The place that a URI names, or a raw path that stands where a URI belongs."""
    text = _text(value, field)
    if _DRIVE.match(text):
        return _raw(_decoded(text.replace("\\", "/"), field), top, field)
    text = text.replace("\\", "/")
    if found := _SCHEME.match(text):
        if found[1].lower() != "file":
            raise _refused(PathFault.FOREIGN, f"it is a URI of the scheme {found[1][:20]}, and names no file", field)
        text = text[found.end() :]
    if text.startswith("//"):
        host, slash, rest = text[2:].partition("/")
        if _DRIVE.fullmatch(host):
            text = f"{host}/{rest}"
        elif host.lower() in ("", "localhost") and slash:
            text = "/" + rest
        else:
            raise _refused(PathFault.HOST, "it is on another machine, or on a share", field)
    if re.match(r"/+[A-Za-z](:|%3[Aa])(/|$)", text):  # file:///C:/work
        text = text.lstrip("/")
    return _raw(_decoded(text, field), top, field)


def _decoded(text: str, field: str) -> str:
    """What the escapes stand for, decoded once; a backslash that was encoded is a letter of a name."""
    if "%" not in text or _BAD_ESCAPE.search(text):
        return text
    try:
        return _fit(unquote_to_bytes(text).decode(), field)
    except UnicodeDecodeError:
        raise _refused(PathFault.NOT_TEXT, "its escapes are not UTF-8", field) from None


def _raw(path: str, top: _Place, field: str) -> _Place:
    """The place that a raw path names. A backslash separates where the root is on a drive, or the path is."""
    drive = path[0].lower() if _DRIVE.match(path) else ""
    if top.drive or drive:
        path = path.replace("\\", "/")
    if drive:
        if path[2:3] != "/":
            raise _refused(PathFault.DRIVE, "it is relative to the folder that was current on a drive", field)
        path = path[2:]
    elif path.startswith("\\\\") or (path.startswith("//") and top.drive):
        raise _refused(PathFault.HOST, "it is on a share", field)
    return _Place(drive, path.startswith("/"), tuple(path.split("/")))


def _top(root: str) -> _Place:
    """The root as a place; it is ours to give, so one that is not absolute is refused as any argument."""
    drive = root[0].lower() if _DRIVE.match(root) else ""
    names = root[2:].replace("\\", "/") if drive else root
    if not names.startswith("/"):
        raise EvidenceInvalid("the root is not an absolute path", field="root")
    return _join(_Place(drive, True, ()), _Place(drive, True, tuple(names.split("/"))))


def _join(start: _Place, way: _Place) -> _Place:
    """Where one is after walking `way` from `start`; nothing is above the top."""
    here = [] if way.absolute else list(start.names)
    for name in way.names:
        if name == "..":
            del here[-1:]
        elif name not in ("", "."):
            here.append(name)
    return _Place(way.drive if way.absolute else start.drive, True, tuple(here))


def _inside(top: _Place, place: _Place, field: str) -> str:
    depth = len(top.names)
    if place.drive != top.drive or place.names[:depth] != top.names:
        raise _refused(PathFault.OUTSIDE, "it is outside the folder that was scanned", field)
    path = "/".join(place.names[depth:])
    if not path:
        raise _refused(PathFault.ROOT, "it is the folder that was scanned, and no file in it", field)
    if fault := why_not_canonical(path):
        raise _refused(fault, "a name looks like a drive" if fault is PathFault.DRIVE else "it is too long", field)
    return path


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise _refused(PathFault.NOT_TEXT, "it is no text", field)
    if not value:
        raise _refused(PathFault.EMPTY, "it is empty", field)
    if len(value) > 8 * EVIDENCE.path_bytes_max:  # before anything walks over it
        raise _refused(PathFault.TOO_LONG, "it is too long", field)
    return _fit(value, field)


def _fit(text: str, field: str) -> str:
    if found := _UNFIT.search(text):
        raise _refused(PathFault.CONTROL, f"it holds the character U+{ord(found[0]):04X}", field)
    return text


def _refused(reason: PathFault, problem: str, field: str) -> EvidenceInvalid:
    limit = f"{EVIDENCE.path_bytes_max} bytes" if reason is PathFault.TOO_LONG else None
    return EvidenceInvalid(problem, field=field, limit=limit, reason=str(reason))
