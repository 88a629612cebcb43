"""Secrets taken out of text that will be kept: by their form, by their names, split over lines, and encoded once.

It cannot guarantee to remove every secret: a password that stands where nothing says so looks like any word, and a
form that is not known here passes. It errs towards removing more. A secret becomes `[redacted:KIND]`, followed by
as many line feeds as it had, so that the lines of a snippet keep their numbers; what is redacted comes back as it
is when it is redacted again (spec D-14; field case R76). Time is linear in the text, whatever it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from testigo.rules.evidence.assignments import is_secret_name, of_assignments
from testigo.rules.evidence.encodings import ESCAPE, may_be_escaped, said_by, unescaped
from testigo.rules.evidence.patterns import Span, longest_word, of_patterns

__all__ = ["hide_named", "is_clean", "redact", "redact_tree"]

_NAMED = (
    "pass", "pwd", "secret", "token", "key", "auth", "credential", "contrase", "senha", "kennwort", "connection",
    "identified", "session",
)  # fmt: skip
"""One of these is in the name of every secret that is known by its name."""
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}+={0,2}")
_ENCODED_LEAST = 16
_LINES_END = r"(?:(?:#[^\n\"'`]{0,200})?\\?\n[ \t]{0,200}){0,2}"
_JOINED = rf"[\"'`][ \t]{{0,20}}{_LINES_END}[+.&]?[ \t]{{0,20}}{_LINES_END}[rbuf]{{0,2}}[\"'`]"
_CONTINUED = r"\\\n[ \t]{0,200}"
_WRAPPED_LINE = r"[A-Za-z0-9+/=_.-]{1,4096}+[ \t]{0,20}(?:\n|\Z)"
_WRAPPED = rf"(?<=[A-Za-z0-9+/=_-])[ \t]{{0,20}}\n[ \t]{{0,200}}(?={_WRAPPED_LINE})"
_SEAM = re.compile(f"{_JOINED}|{_CONTINUED}|{_WRAPPED}")
"""Where a text goes on that was cut in pieces: strings that are joined, a line continued, a line wrapped."""
_SEEMS_JOINED = re.compile(_JOINED)
_SEEMS_WRAPPED = re.compile(rf"\n[ \t]{{0,200}}{_WRAPPED_LINE}")
"""What begins with something definite is found in a third of the time: hardly any text has a seam."""
_QUOTES = ('"', "'", "`")
_ROUNDS = 4
"""What is taken out may lay bare what it hid; more than twice was never seen, and hostile text shall not go on."""
_MARKER = re.compile(r"\[redacted:[a-z-]{1,40}\]")


def is_clean(text: str) -> bool:
    """Whether `redact` would leave `text`, and each of its lines alone, as it is."""
    found = next(iter(_found(text)), None)
    return found is None and next(_elsewise(text), None) is None


def redact(text: str) -> str:
    """`text` without the secrets that are known here, and with as many lines."""
    for _ in range(_ROUNDS):
        spans = [*_found(text), *_elsewise(text)]
        if not spans or (clean := _replaced(text, spans)) == text:
            break
        text = clean
    return text


def hide_named(name: str, value: str) -> str:
    """The value of a key, setting or variable as it is, unless its name says that it is a secret: then a marker."""
    return _replaced(value, [Span(0, len(value), "named")]) if value and is_secret_name(name) else value


def redact_tree(value: Any) -> Any:
    """A JSON value, such as a document or the settings of a TOML file, with every text in it redacted.

    Under a name that says secret, texts and numbers are replaced however deep they are; keys are redacted as text.
    """
    return _tree(value, secret=False)


def _tree(value: Any, *, secret: bool) -> Any:
    if isinstance(value, dict):
        return {redact(key): _tree(item, secret=secret or is_secret_name(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_tree(item, secret=secret) for item in value]
    if isinstance(value, str):
        return _replaced(value, [Span(0, len(value), "named")]) if secret and value else redact(value)
    if secret and isinstance(value, int | float) and not isinstance(value, bool):
        return "[redacted:named]"
    return value


def _found(text: str) -> Iterator[Span]:
    """The secrets that stand in one piece, in the clear or encoded once."""
    longest = longest_word(text)
    yield from _clear(text, longest)
    if longest < _ENCODED_LEAST:
        return
    for run in _ENCODED.finditer(text):
        if any(True for said in said_by(run[0]) for _ in _clear(said, longest_word(said))):
            yield Span(*run.span(), "encoded")


def _clear(text: str, longest: int) -> Iterable[Span]:
    spans = of_patterns(text, longest)
    lower = text.lower()
    return chain(spans, of_assignments(text)) if any(name in lower for name in _NAMED) else spans


def _has_seams(text: str) -> bool:
    if "\\\n" in text or (any(mark in text for mark in _QUOTES) and _SEEMS_JOINED.search(text)):
        return True
    return "\n" in text and _SEEMS_WRAPPED.search(text) is not None and _SEAM.search(text) is not None


def _elsewise(text: str) -> Iterator[Span]:
    """The secrets that show when the pieces of `text` are put together, or its characters that are escaped are read."""
    if _has_seams(text):
        yield from _reread(text, ((seam, "") for seam in _SEAM.finditer(text)))
    if may_be_escaped(text) and ESCAPE.search(text):
        yield from _reread(text, ((escape, unescaped(escape)) for escape in ESCAPE.finditer(text)))


def _reread(text: str, instead: Iterable[tuple[re.Match[str], str]]) -> Iterator[Span]:
    """The secrets of `text` as it reads with one character, or none, instead of each match, where they are in it."""
    pieces: list[str] = []
    begins: list[int] = []  # in what is read
    places: list[tuple[int, int]] = []  # in the text: where the piece begins; by how much it is longer there
    at = length = 0
    for found, character in instead:
        for piece, start, end in ((text[at : found.start()], at, found.start()), (character, *found.span())):
            if piece:
                pieces.append(piece)
                begins.append(length)
                places.append((start, end - start - len(piece)))
                length += len(piece)
        at = found.end()
    pieces.append(text[at:])
    begins.append(length)
    places.append((at, 0))
    for start, end, kind in _found("".join(pieces)):
        first, last = bisect_right(begins, start) - 1, bisect_right(begins, end - 1) - 1
        yield Span(
            places[first][0] + start - begins[first],
            places[last][0] + end - begins[last] + places[last][1],
            kind,
        )


def _replaced(text: str, spans: list[Span]) -> str:
    """`text` with one marker for each run of overlapping spans; a marker that is there already stays whole."""
    parts: list[str] = []
    at = 0
    for start, end, kind in _merged(chain(spans, (Span(*m.span(), "") for m in _MARKER.finditer(text)))):
        parts.append(text[at:start])
        parts.append(f"[redacted:{kind}]" + "\n" * text.count("\n", start, end) if kind else text[start:end])
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans that do not overlap, in order; the first with a kind names the whole."""
    current: Span | None = None
    for span in sorted(spans):
        if current is None or span.start >= current.end:
            if current is not None:
                yield current
            current = span
        else:
            current = Span(current.start, max(current.end, span.end), current.kind or span.kind)
    if current is not None:
        yield current
