"""What is called a secret is one: values given to a password, a secret or a token, in many languages.

`password = "x"`, `"password": "x"`, `PASSWORD=x`, `<password>x</password>`, `--password x`, `setPassword("x")`,
`os.getenv("PASSWORD", "x")`, `IDENTIFIED BY 'x'`, `Server=…;Pwd=x`: the name is found first, then what is given to
it (spec D-14). An expression that only refers to a secret (`password = read_password()`) stays, for who reviews
has to read it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from string import ascii_lowercase, ascii_uppercase

from testigo.rules.evidence.patterns import Span, is_template

__all__ = ["is_secret_name", "of_assignments"]

_KEYS = r"(?:access|account|encryption|master|private|shared|signing)[_.\- ]?key"
_STRONG = (
    r"password|passwort|passwd|passphrase|passcode|pass(?![a-z])|pwd|secret|credential|identified\s{1,8}by"
    rf"|contrase[nñ]a|senha|kennwort|connection[_\- ]?string|{_KEYS}"
)
_WEAK = r"token|api[_.\- ]?key|auth[_.\- ]?key|license[_.\- ]?key|authorization|x-auth|_auth(?![a-z])|session[_\-]?id"

_NAME = re.compile(rf"(?P<strong>{_STRONG})|{_WEAK}")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)

_VALUE = re.compile(
    r"[A-Za-z0-9_.-]{0,60}+"  # the rest of the name
    r"[\"'`\\\])}]{0,6}"  # the end of a key in quotes or brackets
    r"(?:\s{0,8}:\s{0,8}[A-Za-z_&?][A-Za-z0-9_.<>\[\]|&? ]{0,40}(?==))?"  # a type between name and value
    r"(?:\s{1,24}(?:value|default)(?=\s{0,4}[=:]))?"  # where name and value have members of their own
    r"(?P<sep>\s{0,20}(?::=|=>|={1,3}|!={1,2}|:|,|\(|->|>|\bis\b)\s{0,80}|\s{1,8})"
    r"[(\[{]{0,3}\s{0,80}(?:[A-Za-z]{1,2}(?=[\"']))?"  # what a value is wrapped in, and a prefix such as b""
    r"(?:"
    r"(?P<open>\"{3}|'{3})(?P<long>.{1,4096}?(?=\"{3}|'{3})|.{1,4096}+)"
    r"|\\?\"(?P<double>(?:[^\"\\\n]|\\.){1,4096}+)"
    r"|\\?'(?P<single>(?:[^'\\\n]|\\.){1,4096}+)"
    r"|`(?P<back>[^`\n]{1,4096}+)"
    r"|(?P<bare>[^\s\"'`,;&<>(){}\[\]|]{1,4096}+)"
    r")",
    re.S,
)
_QUOTED = ("long", "double", "single", "back")

_WORDS = frozenset(
    {
        "and",
        "any",
        "bool",
        "boolean",
        "bytearray",
        "bytes",
        "char",
        "else",
        "false",
        "float",
        "for",
        "if",
        "in",
        "int",
        "integer",
        "is",
        "nil",
        "no",
        "none",
        "not",
        "null",
        "object",
        "optional",
        "or",
        "required",
        "return",
        "self",
        "str",
        "string",
        "text",
        "this",
        "true",
        "type",
        "undefined",
        "varchar",
        "while",
        "yes",
    }
)
_PLAIN_NAME = re.compile(r"[A-Za-z_$@&*][\w$]*(?:(?:\.|::|->)[\w$]*)*")
_NO_TOKEN = re.compile(r"\s|\A[0-9.]+\Z|\Ahttps?://")
_LOWER_WORDS = re.compile(r"[a-z]+(?:[_.\- ][a-z]+)*|[A-Z]+(?:_[A-Z]+)*|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*")
_BEFORE_CONFIG = re.compile(
    r"(?:^|\n)[ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+)?[\w.\-]*\Z|;[ \t]*[\w]*\Z"
)
_IN_MARKER = re.compile(r"\[redacted:[a-z-]*\Z")
_BEFORE_OPTION = re.compile(r"--?[\w-]*\Z")
_RUN = re.compile(r"[A-Za-z0-9+/_=~.-]{20,}+")
_CHANGES = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")


def is_secret_name(name: str) -> bool:
    """Whether what has this name is taken for a secret, whatever it is."""
    return any(True for _ in _names(name))


def of_assignments(text: str) -> Iterator[Span]:
    """The secrets of `text` that can be told by the names beside them, in no order; they may overlap."""
    line_ends = 0
    for name in _names(text):
        strong = name["strong"] is not None
        value = _VALUE.match(text, name.end())
        if value and name[0] == "pass" and not value["sep"].strip():
            value = None  # `pass "x"` is prose, or Python
        if value and (span := _judged(text, name.start(), strong, value)):
            yield span
        if name.start() < line_ends:
            continue  # the line was looked through for its first name
        begins = text.rfind("\n", 0, name.start()) + 1
        line_ends = text.find("\n", name.end())
        line_ends = len(text) if line_ends < 0 else line_ends
        for run in _RUN.finditer(text, begins, line_ends):
            if _is_dense(run[0]):
                yield Span(*run.span(), "high-entropy")


def _names(text: str) -> Iterator[re.Match[str]]:
    """The names in `text`, in any case; `pass` only where a word begins or ends: in `DB_PASS` and `dbPass`."""
    for name in _NAME.finditer(text.translate(_LOWER)):  # a pattern that ignores case takes five times as long
        at = name.start()
        if _IN_MARKER.search(text[max(0, at - 40) : at]):
            continue
        if name.end() - at != 4 or name[0] != "pass" or not text[at - 1 : at].isalpha() or text[at] == "P":
            yield name


def _judged(text: str, begins: int, strong: bool, value: re.Match[str]) -> Span | None:
    kind = "password" if strong else "token"
    for group in _QUOTED:
        if (said := value[group]) is not None:
            a_docstring = group == "long" and value["sep"].strip() == ":"
            fits = not a_docstring and _is_quoted_secret(said, strong, value["sep"])
            return Span(*value.span(group), kind) if fits else None
    said = value["bare"]
    if said.startswith("redacted:") or is_template(said):
        return None
    after = text[value.end("bare") : value.end("bare") + 2]
    return Span(*value.span("bare"), kind) if _is_bare_secret(text, begins, strong, value, said, after) else None


def _is_quoted_secret(said: str, strong: bool, sep: str) -> bool:
    if is_template(said) or said.startswith("[redacted:"):
        return False
    if strong:
        return bool(said.strip()) and (sep.strip() != "" or " " not in said)
    return len(said) >= 8 and not _NO_TOKEN.search(said) and not _LOWER_WORDS.fullmatch(said)


def _is_bare_secret(text: str, begins: int, strong: bool, value: re.Match[str], said: str, after: str) -> bool:
    sep = value["sep"]
    how = sep.strip()
    before = text[max(0, begins - 60) : begins]
    if not how:
        return _BEFORE_OPTION.search(before) is not None and not said.startswith("-") and strong
    said = said.rstrip(".:")
    if said.lower() in _WORDS or how in (",", "(", "->") or said.startswith(("http://", "https://")):
        return False
    if how == ">":
        return strong and after == "</"
    if after[:1] in ("(", "[") or (after[:1] == "." and not said[-1:].isdigit()):
        return False
    if _PLAIN_NAME.fullmatch(said) and not (any(map(str.isdigit, said)) and "." not in said and len(said) >= 6):
        tight = sep in ("=", ": ", ":")
        ends = after[:1] in ("", "\n", ";", "\r")
        return strong and tight and ends and not _is_reference(said) and _BEFORE_CONFIG.search(before) is not None
    if how in ("==", "===", "!=", "!==", "is"):
        return len(said) >= 6 and any(map(str.isdigit, said)) and not said.isdigit()
    return len(said) >= (4 if strong else 8)


def _is_reference(said: str) -> bool:
    """Whether a plain name refers to something rather than being a password: a type, a path of names, itself."""
    return "." in said or said[:1] in "$@&*" or said[:1].isupper() or is_secret_name(said)


def _is_dense(run: str) -> bool:
    """Whether letters and digits are mixed as chance mixes them, and no person who names things."""
    if not any(map(str.isdigit, run)) or not any(map(str.isalpha, run)):
        return False
    if len(_CHANGES.findall(run)) * 6 < len(run):
        return False
    size = len(run)
    return -sum(n / size * log2(n / size) for n in Counter(run).values()) >= 3.0
