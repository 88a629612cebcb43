"""The panel's languages: the English sentence is the key, `words/*.json` have the others (panel.md).

A sentence is a constant of a template or module, never text from outside; what varies is named in braces.
Where a number decides the form, the key has both, parted by " | ": `t("{n} job | {n} jobs", n=3)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

from testigo.authority.read.pages import Count

__all__ = ["LANGUAGES", "NONE", "Words", "chosen_language", "words_in"]

LANGUAGES: Mapping[str, str] = {"en": "English", "es": "Español"}
"""The languages by their tags, each by its own name."""

NONE = "\u2013"
"""In the place of a value that there is not."""

_FOLDER = Path(__file__).parent / "words"
_FORMS = " | "
_GROUP = "\u202f"
"""Between the thousands of a number: a narrow space, which every language here reads alike."""


class Words:
    """`t`: a sentence in one language, with its facts in place."""

    def __init__(self, language: str, sentences: Mapping[str, str]) -> None:
        self.language = language
        self._sentences = sentences

    def __call__(self, sentence: str, /, **facts: object) -> str:
        """The sentence as it is said in this language; in English where it has no translation.

        `n` chooses the form of a sentence that has two: the first for exactly 1. Numbers are written as
        the panel writes them. Where a fact is Markup the answer is, with everything else in it escaped.
        """
        said = self._sentences.get(sentence, sentence)
        if _FORMS in said and "n" in facts:
            one, many = said.split(_FORMS)
            said = one if _is_one(facts["n"]) else many
        if not facts:
            return said
        shown = {name: _shown(fact, self) for name, fact in facts.items()}
        if any(isinstance(fact, Markup) for fact in shown.values()):
            return escape(said).format(**shown)
        return said.format(**shown)

    def knows(self, sentence: str) -> bool:
        """Whether it can be said in this language."""
        return self.language == "en" or sentence in self._sentences

    def number(self, value: Count | float | None, digits: int = 0) -> str:
        """A number as the panel writes it: 1 904, 10 000+, 0.8 (0,8 in Spanish), a dash for none."""
        if value is None:
            return NONE
        if isinstance(value, Count):
            return f"{self.number(value.n)}{'+' if value.more else ''}"
        written = f"{value:,.{digits}f}"
        point = "," if self.language == "es" else "."
        return written.replace(",", _GROUP).replace(".", point)


def chosen_language(by_hand: str | None, accepted: str) -> str:
    """The language that was chosen by hand, or the first of a browser's Accept-Language that is known; else English."""
    if by_hand is not None and by_hand in LANGUAGES:
        return by_hand
    wishes = [_wish(part) for part in accepted[:1000].split(",")]
    known = [(share, tag) for share, tag in wishes if tag in LANGUAGES and share > 0]
    return max(known, key=lambda wish: wish[0])[1] if known else "en"


@cache
def words_in(language: str) -> Words:
    """`t` in this language."""
    file = _FOLDER / f"{language}.json"
    return Words(language, json.loads(file.read_text("utf-8")) if file.exists() else {})


def _wish(part: str) -> tuple[float, str]:
    """What a part of Accept-Language wishes, `es-MX;q=0.8` for one: how much, and which language."""
    tag, _, parameter = part.strip().partition(";")
    try:
        share = float(parameter.strip().removeprefix("q=")) if parameter else 1.0
    except ValueError:
        share = 0.0
    return share, tag.split("-")[0].lower()


def _is_one(n: object) -> bool:
    return n == 1 if not isinstance(n, Count) else n == Count(1)


def _shown(fact: object, words: Words) -> object:
    if isinstance(fact, Count) or (isinstance(fact, int) and not isinstance(fact, bool)):
        return words.number(fact)
    return fact
