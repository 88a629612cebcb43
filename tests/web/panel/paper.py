"""A page as somebody without a script meets it: its text, its links, its forms and what they would send."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx

__all__ = ["Form", "Paper", "paper", "press"]


@dataclass
class Form:
    """A form: where it goes, how, what it sends as it stands, and where its buttons send it instead."""

    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


class Paper(HTMLParser):
    """A page that was read."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._words: list[str] = []
        self._link: tuple[str, int] | None = None
        self._open: Form | None = None
        self.feed(html)

    @property
    def text(self) -> str:
        """What can be read, on one line."""
        return " ".join("".join(self._words).split())

    def form(self, action: str) -> Form:
        """The form whose address ends so."""
        (found,) = [form for form in self.forms if form.action.endswith(action)]
        return found

    def link(self, words: str) -> str:
        """Where the first link leads that says so."""
        return next(address for said, address in self.links.items() if words in said)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag == "form":
            self._open = Form(given.get("action") or "", (given.get("method") or "get").lower())
            self.forms.append(self._open)
        if tag == "a" and given.get("href"):
            self._link = (str(given["href"]), len(self._words))
        if self._open is not None:
            if tag == "input" and given.get("name") and given.get("type") not in ("checkbox", "radio"):
                self._open.fields.append((str(given["name"]), given.get("value") or ""))
            if tag == "button" and given.get("formaction"):
                self._open.elsewhere.append(str(given["formaction"]))
        self._words.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if tag == "form":
            self._open = None
        if tag == "a" and self._link is not None:
            address, start = self._link
            self.links.setdefault(" ".join("".join(self._words[start:]).split()), address)
            self._link = None

    def handle_data(self, data: str) -> None:
        """Text."""
        self._words.append(data)


def paper(answer: httpx.Response, status: int = 200) -> Paper:
    """The page of an answer, which must have this status."""
    assert answer.status_code == status, (answer.status_code, answer.text[:2000])
    return Paper(answer.text)


def press(client: httpx.Client, form: Form, **changed: str) -> httpx.Response:
    """Send a form, with these fields in the place of what it would send."""
    kept = [(name, value) for name, value in form.fields if name not in changed]
    sent = [*kept, *changed.items()]
    address = urljoin(str(client.base_url), form.action)
    if form.method == "post":
        together: dict[str, list[str]] = {}
        for name, value in sent:
            together.setdefault(name, []).append(value)
        return client.post(address, data=together)
    return client.get(address, params=tuple(sent))
