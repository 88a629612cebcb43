"""Four identities, one encoding: every digest is SHA-256 over RFC 8785 bytes of a JSON object.

The object has a version `"v"` and a type `"t"`, so that no two kinds can collide, and the digest is
written `sha256:<64 hex digits>` (spec model.md, *Four identities*; A-09, B-04, B-15, B-20, D-01,
P-06, P-28). `vectors.json`, shipped beside this module, publishes the bytes and digests that any
other implementation must reach.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence

import rfc8785

from testigo.errors import Invalid
from testigo.rules.faults import SAFE_INTEGER_MAX, find
from testigo.settings import LIMITS

__all__ = [
    "VERSION",
    "attempt_key",
    "canonical",
    "command_digest",
    "content_digest",
    "digest",
    "effect_key",
    "product_key",
    "request_digest",
]

VERSION = 1
"""The `"v"` of every identity object: a change of any object's shape needs another."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SORTED = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"), sort_keys=True)


def command_digest(actor: str, action: str, content: str) -> str:
    """The digest kept with the receipt of `(actor, action)`; `content` is the digest of the command's own
    canonical content, so a resend is told from a collision (spec B-04)."""
    return digest("command", {"actor": actor, "action": action, "content": content})


def request_digest(given: Mapping[str, object], payload: str) -> str:
    """The digest of a submission: what the caller gave, before defaults and clocks, and the digest of
    the payload's exact text (spec D-01, P-06)."""
    return digest("request", {"given": dict(given), "payload": payload})


def product_key(stage: str, inputs: Sequence[str], model: str, config: str, schema: str) -> str:
    """The key of a product: a stage over ordered inputs, under a model manifest and a config, all three
    named by digest, in one version of the output's schema (spec A-09)."""
    _refuse_bare_text(inputs, "inputs")
    for at, value in enumerate(inputs):
        _need_digest(value, f"inputs[{at}]")
    _need_digest(model, "model")
    _need_digest(config, "config")
    return digest(
        "product", {"stage": stage, "inputs": list(inputs), "model": model, "config": config, "schema": schema}
    )


def effect_key(mission: str | None, job: str, epoch: int, operation: str, parts: Sequence[str] = ()) -> str:
    """The idempotency key of an effect on the world; `epoch` is that of the first intent, which later
    epochs reuse (spec B-20, P-28)."""
    _refuse_bare_text(parts, "parts")
    return digest(
        "effect", {"mission": mission, "job": job, "epoch": epoch, "operation": operation, "parts": list(parts)}
    )


def attempt_key(job: str, failures: int) -> str:
    """The key under which an attempt meets the outside: the same for every run between two failures,
    so that a run repeated after a loss is recognised there (spec B-15)."""
    return digest("attempt", {"job": job, "failures": failures})


def content_digest(data: bytes | str) -> str:
    """SHA-256 of bytes, or of the UTF-8 of a text, as it is: the name of a document or blob."""
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError:
            raise Invalid("text with a lone surrogate has no bytes", field="data") from None
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest(t: str, members: Mapping[str, object]) -> str:
    """The digest of an identity object of type `t`; raises `Invalid` as `canonical` does, or when
    `members` names "v" or "t"."""
    if "v" in members or "t" in members:
        raise Invalid('"v" and "t" belong to the encoding', field="v" if "v" in members else "t")
    return content_digest(_bytes({"v": VERSION, "t": t, **members}))


def canonical(members: Mapping[str, object]) -> bytes:
    """The RFC 8785 bytes of a JSON object.

    1.0 and 1, and -0.0 and 0, are one number and give the same bytes. Raises `Invalid` with the path of
    the fault for an integer beyond 2^53-1 (write it as a string), NaN, infinity, NUL, a lone surrogate,
    a key that is not a string, any type that JSON has not, and more than 64 levels.
    """
    return _bytes(dict(members))


def _bytes(tree: dict[str, object]) -> bytes:
    if _plain(tree, LIMITS.json_depth_max):
        text = _SORTED.encode(tree)
        if "\\u0000" not in text and (text.isascii() or not _SURROGATE.search(text)):
            return text.encode()
    fault = find(tree, safe_integers=True)
    if fault is not None:
        raise Invalid(fault.problem, field=fault.path.removeprefix("."), limit=fault.limit)
    return rfc8785.dumps(tree)  # type: ignore[arg-type]  # its type is closed; `find` saw the tree


def _plain(value: object, levels: int) -> bool:
    """Whether the C encoder, sorting by code point, writes RFC 8785 as it stands: no float, no integer beyond
    2^53-1, and no key outside ASCII (RFC 8785 sorts by UTF-16 units). It takes a fifth of the time."""
    items: Iterable[object]
    if not levels:
        return False
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str or not key.isascii():
                return False
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        return False
    for item in items:
        if item is None or isinstance(item, str):
            continue
        if isinstance(item, int):
            if not -SAFE_INTEGER_MAX <= item <= SAFE_INTEGER_MAX:
                return False
        elif not _plain(item, levels - 1):
            return False
    return True


def _refuse_bare_text(texts: Sequence[str], field: str) -> None:
    """A string is a sequence of its characters, and never what the caller meant."""
    if isinstance(texts, str):
        raise Invalid("a list of texts is needed, not one text", field=field)


def _need_digest(value: object, field: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise Invalid("a digest is needed", field=field, limit="sha256: and 64 hex digits in lower case")
