"""Before anything is changed, it is asked whether it is meant: a page that says what will happen (panel.md *Actions*).

The action's id is made with the page: whoever sends its form twice has done it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from testigo.access.who import Who
from testigo.authority.actions import new_id
from testigo.settings import LIMITS
from testigo.web.panel.pages import render, url

__all__ = ["ActionId", "Name", "Question", "Reason", "ask", "done"]

Name = Annotated[str, Form(max_length=LIMITS.name_chars_max)]
Reason = Annotated[str, Form(max_length=4_000)]
ActionId = Annotated[str, Form(max_length=64)]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `title` in words, `effects` a sentence each, `button` what it is answered with.

    The form goes to `path` with these `fields`; `back` is where whoever did not mean it goes. `reason` is asked
    for unless it is None: "optional" or "required".
    """

    title: str
    effects: Sequence[str]
    button: str
    path: str
    back: str
    fields: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = "optional"
    danger: bool = False


def ask(request: Request, who: Who, question: Question) -> HTMLResponse:
    """The page that asks."""
    return render(request, "ask.html", title=question.title, who=who, question=question, action_id=new_id())


def done(request: Request, path: str, said: str, **query: str) -> RedirectResponse:
    """To the page that shows what was done; `said` is the key of what it says of it."""
    return RedirectResponse(url(request, path, **query, said=said), status_code=303)
