"""Where an App connects, how a worker runs, how the panel is served: given, else the environment, else a file.

    url     the argument, `TESTIGO_URL`, `url` of a file, `embedded:` under the nearest project
    schema  the argument, `TESTIGO_SCHEMA`, `schema` of a file, `testigo`
    worker  what was given by name, `TESTIGO_WORKER_SLOTS` and its like, `[worker]` of a file, `settings.Worker`
    web     the same with `TESTIGO_WEB_…`, `[web]` and `settings.Web`; `retention` likewise, for whoever prunes

The file is the nearest upwards, from the working folder, of `testigo.toml` and a `pyproject.toml` that
has a table `tool.testigo`; in one folder the former counts. A directory that it names is found from where
the file lies. What a file or variable says that nobody would read is refused by name, so that no setting
goes unnoticed for its spelling.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

from testigo.errors import Invalid, SettingInvalid
from testigo.rules.fields import BIGINT_MAX, seconds, whole
from testigo.settings import LIMITS, RETENTION, STORE, WEB, WORKER, Retention, Web, Worker

__all__ = ["Installation", "installation", "retention_settings", "web_settings", "worker_settings"]

_TABLES = ("worker", "web", "retention")
_MEMBERS = ("url", "schema", *_TABLES)
S = TypeVar("S", Worker, Web, Retention)

_Value = int | float | str
_Spelled = Callable[[str], str]
"""How a setting is named to whoever gave it: in a file, as a variable, on the command line."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The URL and schema of an installation, and who named the URL, in words for a log line.

    The URL may hold a password, so it is in no `repr`.
    """

    url: str
    schema: str
    source: str

    def __repr__(self) -> str:
        return f"Installation(schema={self.schema!r}, source={self.source!r})"


@dataclass(frozen=True, slots=True)
class _File:
    """What the nearest file says, and where it lies."""

    path: Path
    table: Mapping[str, Any]


def installation(url: str | None = None, schema: str | None = None) -> Installation:
    """Where to connect, as the argument, the environment, the nearest file or the default says.

    Raises `SettingInvalid` for a file that cannot be read or says what is not known.
    """
    file = _nearest()
    table = {} if file is None else file.table
    environment = os.environ
    if url is not None:
        named, source = url, "the argument"
    elif "TESTIGO_URL" in environment:
        named, source = environment["TESTIGO_URL"], "TESTIGO_URL"
    elif file is not None and "url" in table:
        named, source = _from_where(file.path, table["url"]), str(file.path)
    else:
        named, source = "embedded:", "the default"
    schemas = (schema, environment.get("TESTIGO_SCHEMA"), table.get("schema"), STORE.schema)
    return Installation(named, next(each for each in schemas if each is not None), source)


def worker_settings(given: Mapping[str, object] | None = None) -> Worker:
    """How a worker runs: `settings.Worker` with what is given here, in the environment and in the nearest file.

    A value that is None counts as not given. Raises `SettingInvalid`, naming the setting and where it
    was given, for one that is not known, not a number of its kind, or out of range.
    """
    return _settings(WORKER, "worker", given)


def web_settings(given: Mapping[str, object] | None = None) -> Web:
    """How the panel and the API are served: `settings.Web` with what is given, as `worker_settings` does."""
    found = _settings(WEB, "web", given)
    for name in ("public_url", "oidc_issuer"):
        if not _is_web_site(getattr(found, name)):
            raise SettingInvalid(
                "That is no address of a web site.", field=f"web.{name}", limit="https://host/prefix, without a query"
            )
    return found


def retention_settings() -> Retention:
    """How long what has ended is kept: `settings.Retention`, with what the environment and the nearest file say."""
    return _settings(RETENTION, "retention", None)


def _is_web_site(url: str) -> bool:
    """Whether this is the address of one, or nothing."""
    try:
        address = urlsplit(url)
    except ValueError:
        return False
    return not url or (address.scheme in ("http", "https") and bool(address.hostname) and not address.query)


def _settings(default: S, table: str, given: Mapping[str, object] | None) -> S:
    """The settings of one table, from all who may give them."""
    kinds = _kinds(default)
    file = _nearest()
    found: dict[str, Any] = {}
    if file is not None:
        found |= _checked(kinds, file.table.get(table, {}), lambda name: f"{file.path}: {table}.{name}")
    prefix = f"TESTIGO_{table.upper()}_"
    found |= _checked(kinds, _variables(prefix, kinds), lambda name: prefix + name.upper())
    chosen = {name: value for name, value in (given or {}).items() if value is not None}
    found |= _checked(kinds, chosen, lambda name: f"{table}.{name}")
    return replace(default, **found)


def _nearest() -> _File | None:
    """The nearest file upwards that says something."""
    folder = Path.cwd()
    for at in (folder, *folder.parents):
        own, project = at / "testigo.toml", at / "pyproject.toml"
        if own.is_file():
            return _File(own, _table(own, _read(own)))
        if project.is_file():
            tool = _read(project).get("tool", {})
            if isinstance(tool, dict) and "testigo" in tool:
                return _File(project, _table(project, tool["testigo"]))
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingInvalid(f"{path} cannot be read: {error}.", field=str(path)) from error


def _table(path: Path, table: object) -> Mapping[str, Any]:
    """The settings of a file, of which the names and the texts are checked."""
    if not isinstance(table, dict):
        raise SettingInvalid("A table is needed.", field=f"{path}: testigo")
    _refuse_unknown(table, _MEMBERS, lambda name: f"{path}: {name}")
    for name in ("url", "schema"):
        if name in table and not isinstance(table[name], str):
            raise SettingInvalid("Text is needed.", field=f"{path}: {name}")
    for name in _TABLES:
        if not isinstance(table.get(name, {}), dict):
            raise SettingInvalid("A table is needed.", field=f"{path}: {name}")
    return table


def _from_where(path: Path, url: str) -> str:
    """The URL that a file names: its directories are found from where the file lies."""
    scheme, _, rest = url.partition(":")
    if scheme != "embedded" or not rest or rest.startswith("~"):
        return url
    return f"embedded:{path.parent / rest}"


def _variables(prefix: str, kinds: Mapping[str, type]) -> dict[str, object]:
    """The settings of a table among the variables of the environment."""
    named = {name.removeprefix(prefix).lower(): text for name, text in os.environ.items() if name.startswith(prefix)}
    return {name: text if kinds.get(name) is str else _number(text) for name, text in named.items()}


def _number(text: str) -> object:
    """The number that a variable holds; its text, which is then refused as such, if it holds none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _checked(kinds: Mapping[str, type], given: Mapping[str, object], spelled: _Spelled) -> dict[str, _Value]:
    """What was given, if each is a setting of that table and within its range."""
    _refuse_unknown(given, kinds, spelled)
    return {name: _within(name, kinds[name], value, spelled(name)) for name, value in given.items()}


def _within(name: str, kind: type, value: object, field: str) -> _Value:
    if kind is str:
        if not isinstance(value, str):
            raise SettingInvalid("Text is needed.", field=field)
        return value
    least = 2 if name == "beats_per_term" else 0 if name in _MAY_BE_ZERO else 1
    try:
        if kind is int:
            return whole(value, field=field, low=least, high=_most(name))
        return seconds(value, field=field, zero=not least)
    except Invalid as error:
        raise SettingInvalid(error.message, field=field, limit=error.limit) from None


def _most(name: str) -> int:
    return LIMITS.days_max if name.endswith("_days") else BIGINT_MAX


_MAY_BE_ZERO = frozenset(
    {
        "drain_seconds",
        "kill_grace_seconds",
        "log_bytes_max",
        "log_line_bytes_max",
        "log_lines_max",
        "note_seconds",
        "runner_age_seconds_max",
        "runner_jobs_max",
        "runner_memory_bytes_max",
    }
)
"""Settings of which none at all makes sense. A beat more than one in a term is needed, and one of all others."""


def _refuse_unknown(given: Iterable[str], known: Iterable[str], spelled: _Spelled) -> None:
    names = sorted(known)
    for name in given:
        if name not in names:
            raise SettingInvalid("There is no such setting.", field=spelled(name), limit=", ".join(names))


@cache
def _kinds(settings: Worker | Web | Retention) -> dict[str, type]:
    hints = get_type_hints(type(settings))
    return {each.name: hints[each.name] for each in fields(settings)}
