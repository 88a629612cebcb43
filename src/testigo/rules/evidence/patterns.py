"""What known secrets look like: tokens that their issuers made recognisable, keys, headers and addresses.

Each row says what it finds, of which one must be in a text for it to be looked for, and where the secret is. Every
expression takes time linear in the text: what repeats without bound is possessive and cannot fail after it, or is
bounded (spec D-14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from testigo.rules.evidence.encodings import decoded

__all__ = ["PATTERNS", "Pattern", "Span", "is_template", "longest_word", "of_patterns"]


class Span(NamedTuple):
    """A secret from `start` to before `end`, and what kind of secret it is."""

    start: int
    end: int
    kind: str


class Pattern(NamedTuple):
    """A kind of secret: the group `secret`, or the whole, of what `shape` matches and `fits` accepts."""

    kind: str
    hints: tuple[str, ...]
    shape: re.Pattern[str]
    fits: Callable[[str], bool] = bool


_TEMPLATE = re.compile(r"[\w.-]*:?(?:\$?\{[^{}]*\}|\{\{[^{}]*\}\}|\$\w+|%s|%\(\w+\)s|<[^<>]*>|\*+|\.{3}|…)")


def is_template(text: str) -> bool:
    """Whether a value only says where the secret would be: `${PASSWORD}`, `{password}`, `<password>`, `****`."""
    return _TEMPLATE.fullmatch(text) is not None


def _is_bearer(token: str) -> bool:
    """Prose goes on after the word, too: `bearer authentication`."""
    return len(token) >= 24 or (len(token) >= 8 and not token.isalpha())


def _is_basic(token: str) -> bool:
    return ":" in (decoded(token) or "")


def _is_jwt(token: str) -> bool:
    return len(token) >= 20 and "." in token


def _is_user_info(text: str) -> bool:
    return not is_template(text.partition(":")[2])


def _row(kind: str, hints: str, shape: str, fits: Callable[[str], bool] = bool) -> Pattern:
    return Pattern(kind, tuple(hints.split()), re.compile(shape), fits)


PATTERNS: tuple[Pattern, ...] = (
    _row(
        "aws-key-id",
        "AKIA ASIA ABIA ACCA AGPA AIDA AROA AIPA ANPA ANVA",
        r"A(?:KIA|SIA|BIA|CCA|GPA|IDA|ROA|IPA|NPA|NVA)[A-Z0-9]{16}",
    ),
    _row("aws-key", "amzn.mws.", r"amzn\.mws\.[0-9a-f-]{36}"),
    _row("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}+"),
    _row("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
    _row(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas|ffct)-[A-Za-z0-9_.-]{20,}+",
    ),
    _row("slack-token", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}+"),
    _row("slack-token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{10,}+"),
    _row(
        "slack-webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_+-]{20,}+)",
    ),
    _row("discord-webhook", "/api/webhooks/", r"/api/webhooks/(?P<secret>[0-9]{10,30}/[A-Za-z0-9_-]{30,}+)"),
    _row("google-key", "AIza", r"AIza[A-Za-z0-9_-]{30,}+"),
    _row("google-token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{20,}+"),
    _row("google-token", "1//0", r"1//0[A-Za-z0-9_-]{30,}+"),
    _row("google-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    _row("stripe-key", "k_live_ k_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    _row("stripe-key", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}+"),
    _row("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+){0,4}+", _is_jwt),
    _row("url-credentials", "://", r"://(?P<secret>[^\s/?#@:'\"<>]{0,100}:[^\s/?#'\"<>]{0,300})@", _is_user_info),
    _row("url-credentials", "://", r"://(?P<secret>[A-Za-z0-9_.~%-]{16,300}+)@"),
    _row(
        "authorization",
        "uthorization UTHORIZATION",
        r"(?i)authorization[\"'\]]{0,3}\s{0,8}[:=,]\s{0,8}[\"']?"
        r"(?:basic|bearer|token|digest|negotiate|apikey|bot|hmac|aws4-hmac-sha256)\s{1,8}(?P<secret>[^\n\"'{$]{4,}+)",
    ),
    _row("bearer-token", "earer EARER", r"(?i)\bbearer\s{1,8}(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)", _is_bearer),
    _row("basic-credentials", "asic ASIC", r"(?i)\bbasic\s{1,8}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})", _is_basic),
    _row(
        "cookie",
        "ookie: OOKIE:",
        r"(?i)cookie:\s{0,8}(?P<secret>[A-Za-z0-9_.-]{1,100}=[^\n\"']{4,}+)",
    ),
    _row("azure-signature", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,}+)"),
    _row("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}+"),
    _row("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}+"),
    _row(
        "ai-key",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|ant-[a-z0-9]{2,12}|or-v1)-[A-Za-z0-9_-]{20,}+|[A-Za-z0-9]{20,}+)",
    ),
    _row("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{30,}+"),
    _row("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}+"),
    _row("twilio-key", "SK", r"SK[0-9a-f]{32}"),
    _row("telegram-token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}+"),
    _row("digitalocean-token", "_v1_", r"do[opr]_v1_[a-f0-9]{40,}+"),
    _row("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _row("databricks-token", "dapi", r"dapi[a-f0-9]{32}"),
    _row("docker-token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}+"),
    _row("vault-token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{20,}+"),
    _row("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    # What a tool shows of a line may end in the middle of a secret: too short for its form, and half of it still. Texts
    # that are looked at together have a line feed and a NUL between them.
    _row(
        "cut-token",
        "AKIA ASIA ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xox AIza k_live_ dckr_pat_ hvs. AGE-SECRET-KEY-",
        r"(?P<secret>A[KS]IA[A-Z0-9]{4,15}|gh[pousr]_[A-Za-z0-9]{4,19}|github_pat_[A-Za-z0-9_]{4,19}"
        r"|glpat-[A-Za-z0-9_.-]{4,19}|xox[abeprs]-[A-Za-z0-9-]{3,9}|AIza[A-Za-z0-9_-]{6,29}|[rs]k_live_[A-Za-z0-9]{4,9}"
        r"|dckr_pat_[A-Za-z0-9_-]{4,19}|hvs\.[A-Za-z0-9_-]{4,19}|AGE-SECRET-KEY-1[A-Z0-9]{4,49})(?:\.{3}|…)?\s{0,9}(?:\Z|\x00)",
    ),
)

_BY_HINT = {
    hint: tuple(row for row in PATTERNS if hint in row.hints)
    for hint in sorted({hint for row in PATTERNS for hint in row.hints})
}


def _sign_of(hint: str) -> str:
    """What most texts lack and this hint has: its first mark, or else its first capital, or else the whole."""
    marks = [letter for letter in hint if not letter.isalnum()]
    return next(iter([*marks, *filter(str.isupper, hint), hint]))


_BY_SIGN = tuple((sign, tuple(h for h in _BY_HINT if _sign_of(h) == sign)) for sign in {*map(_sign_of, _BY_HINT)})
"""A short text that holds no secret, as nearly all are, is looked through for a few signs and no hint."""
_KEY_BEGINS = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY|PuTTY-User-Key-File-")
_KEY_ENDS = re.compile(
    r"-{4,5} ?END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?(?: ?-{4,5})?|Private-MAC: ?\w{0,128}"
)
_KEY_LINE_LEAST = 60
_KEY_LINES = re.compile(
    r"(?:^[ \t]{0,40}[\"']?[A-Za-z0-9+/]{60,76}={0,2}(?:\\n)?[\"']?,?[ \t]{0,40}(?:\n|\Z)){2,}+", re.M
)


def longest_word(text: str) -> int:
    """How long what stands between blanks is at most: nothing that is encoded is longer."""
    return max(map(len, text.split()), default=0)


def of_patterns(text: str, longest: int) -> Iterator[Span]:
    """The secrets of `text`, whose longest word is this long, that can be told by their form alone.

    They are in no order, and may overlap.
    """
    hints = [hint for sign, its in _BY_SIGN if sign in text for hint in its if hint in text]
    for kind, _, shape, fits in {row for hint in hints for row in _BY_HINT[hint]}:
        group = "secret" if shape.groupindex else 0
        for found in shape.finditer(text):
            if fits(found[group]):
                yield Span(*found.span(group), kind)
    if "PRIVATE KEY" in text or "PuTTY" in text:
        yield from _of_keys(text)
    if longest >= _KEY_LINE_LEAST and "\n" in text and len(text) > 120:
        for found in _KEY_LINES.finditer(text):
            yield Span(found.start(), len(found[0].rstrip("\n")) + found.start(), "encoded-lines")


def _of_keys(text: str) -> Iterator[Span]:
    """Private keys: to their end; to the end of the text where that was cut off, and from its beginning likewise."""
    at = 0
    first = _KEY_BEGINS.search(text)
    for cut_off in _KEY_ENDS.finditer(text, 0, first.start() if first else len(text)):
        at = cut_off.end()
    if at:
        yield Span(0, at, "private-key")
    while begin := _KEY_BEGINS.search(text, at):
        end = _KEY_ENDS.search(text, begin.end())
        at = end.end() if end else len(text)
        yield Span(begin.start(), at, "private-key")
