"""Every sentence of the panel is there in every language, with the same facts and the same number of forms."""

from __future__ import annotations

import json
import re

import pytest
from markupsafe import Markup

from testigo.access.roles import Role
from testigo.authority.actions import new_id
from testigo.authority.read.pages import Count
from testigo.web.panel.words import LANGUAGES, chosen_language, words_in
from tests.web.conftest import Site
from tests.web.panel.sentences import PANEL, sentences

OTHERS = sorted(set(LANGUAGES) - {"en"})


def kept(language: str) -> dict[str, str]:
    """What a language has."""
    return dict(json.loads((PANEL / "words" / f"{language}.json").read_text("utf-8")))


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_is_translated_and_nothing_else(language: str) -> None:
    """What the panel can say, it can say in this language; and what it no longer says is gone from there."""
    found = kept(language)
    assert sorted(sentences() - set(found)) == [], f"not in {language}.json"
    assert sorted(set(found) - sentences()) == [], f"said nowhere, so not needed in {language}.json"
    assert list(found) == sorted(found)


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_tells_the_same_facts_in_the_same_forms(language: str) -> None:
    """No name in braces is lost or misspelt, and no form of a number."""
    for sentence, said in kept(language).items():
        assert set(re.findall(r"{\w+}", said)) == set(re.findall(r"{\w+}", sentence)), sentence
        assert said.count(" | ") == sentence.count(" | "), sentence


def test_a_number_chooses_the_form() -> None:
    """Exactly one is one; a count that stopped at one is more."""
    t = words_in("en")
    said = "{n} job | {n} jobs"
    assert [t(said, n=n) for n in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
    assert t(said, n=Count(1)) == "1 job"
    assert t(said, n=Count(1, more=True)) == "1+ jobs"
    assert words_in("es")(said, n=1) == "1 trabajo"


def test_numbers_are_written_as_the_language_does() -> None:
    """Thousands are parted by a narrow space, and the decimal sign is the language's."""
    assert words_in("en").number(10_000) == "10\u202f000"
    assert words_in("en").number(Count(10_000, more=True)) == "10\u202f000+"
    assert words_in("en").number(1234.56, 1) == "1\u202f234.6"
    assert words_in("es").number(1234.56, 1) == "1\u202f234,6"
    assert words_in("en").number(None) == "\u2013"


def test_facts_are_text_unless_they_are_markup_and_then_the_rest_is_escaped() -> None:
    """Whatever a name holds, it is no markup and no pattern."""
    t = words_in("en")
    assert t("The user {name} is <new>.", name="{x}<b>") == "The user {x}<b> is <new>."
    marked = t("{at}: the user {name} is <new>.", at=Markup("<time>now</time>"), name="<b>")
    assert marked == Markup("<time>now</time>: the user &lt;b&gt; is &lt;new&gt;.")


def test_what_has_no_translation_is_said_in_english_and_no_title_is_taken_for_a_pattern() -> None:
    """A title may be a job's own name."""
    assert words_in("es")("a name with {braces} and {0}") == "a name with {braces} and {0}"


@pytest.mark.parametrize(
    ("by_hand", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "es-MX,es;q=0.9,en;q=0.8", "es"),
        (None, "fr,en;q=0.3,es;q=0.4", "es"),
        (None, "es;q=0,en", "en"),
        (None, "es;q=much", "en"),
        (None, ",;;q=,*", "en"),
        ("es", "en", "es"),
        ("xx", "es", "es"),
    ],
)
def test_the_language_is_the_chosen_one_or_the_first_that_the_browser_knows(
    by_hand: str | None, accepted: str, language: str
) -> None:
    """A header of any form is read as far as it says something."""
    assert chosen_language(by_hand, accepted) == language


def test_a_refusal_is_said_in_the_language_of_whoever_is_refused(site: Site) -> None:
    """What it means, and what to do; its own words, where they hold facts, stand below as what they are."""
    viewer = site.as_(Role.VIEWER)
    viewer.headers["Accept-Language"] = "es"
    refused = {
        "/horizon/nowhere": ("No hay nada en esta dirección.", "Comprueba la dirección."),
        "/horizon/audit": ("Tu rol no puede hacer esto. No se hizo nada.", "Pide a un administrador un rol"),
        f"/horizon/jobs/{new_id()}": ("No existe, o ya no.", "Comprueba el identificador"),
        "/horizon/failed?since=x": ("Eso no es un periodo de esta página.", "Corrige el campo que se nombra"),
        "/horizon/jobs?q=%22": ("Cierra las comillas",),
    }
    for path, said in refused.items():
        text = viewer.get(path).text
        assert [each for each in said if each not in text] == [], (path, text)
    assert 'lang="en">The role viewer has no right' in viewer.get("/horizon/audit").text
    assert 'lang="en"' not in viewer.get("/horizon/nowhere").text
