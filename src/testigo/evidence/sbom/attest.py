"""What was made of what, said under our name: an in-toto statement in a DSSE envelope, signed with Ed25519.

The statement is a link (in-toto attestation, link v0.3): its subject is the sanitised artifact, its one material the
raw report. The key is the installation's own; whoever has its public half can check that nothing was changed since.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from testigo.errors import ArtifactInvalid, Invalid
from testigo.rules.identity import canonical
from testigo.store.keys import Keyring

__all__ = ["ENVELOPE_BYTES_MAX", "PAYLOAD_TYPE", "Signer", "statement", "verify"]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/link/v0.3"
ENVELOPE_BYTES_MAX = 64 * 1024
KEY_NAME = "evidence"


def statement(name: str, *, digest: str, raw_digest: str, notes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The statement that the artifact `name` of `digest` was made by sanitising what has `raw_digest`.

    Digests are `sha256:` and 64 hexadecimal digits; `notes` are counts of what was done.
    """
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": _digest_set(digest)}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "name": "sanitise",
            "command": [],
            "materials": [{"name": "raw", "digest": _digest_set(raw_digest)}],
            "byproducts": dict(notes or {}),
            "environment": {},
        },
    }


@dataclass(frozen=True, slots=True)
class Signer:
    """The installation's key for evidence: made at its first use, kept among the installation's secrets."""

    _key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def of(cls, keyring: Keyring) -> Signer:
        """The key of that name in `keyring`. Raises KeysUnusable as that does."""
        return cls(Ed25519PrivateKey.from_private_bytes(keyring.secret(KEY_NAME, 32)))

    @property
    def public_key(self) -> bytes:
        """The 32 bytes by which others check what was signed."""
        return self._key.public_key().public_bytes_raw()

    def envelope(self, stated: Mapping[str, Any]) -> bytes:
        """`stated` in a signed envelope: its canonical bytes, which is what the envelope's own digest is taken over."""
        payload = canonical(stated)
        signature = self._key.sign(_signed_bytes(payload))
        signed = {"keyid": _key_id(self.public_key), "sig": base64.b64encode(signature).decode()}
        return canonical(
            {
                "payloadType": PAYLOAD_TYPE,
                "payload": base64.b64encode(payload).decode(),
                "signatures": [signed],
            }
        )


def verify(envelope: bytes, public_key: bytes, *, digest: str, raw_digest: str | None = None) -> dict[str, Any]:
    """The statement in `envelope`, if it is signed with that key and is about the artifact of `digest`.

    With `raw_digest` its material must be that, too. Raises ArtifactInvalid naming the check that failed:
    `envelope`, `signature`, `statement`, `subject`, `material`.
    """
    payload = _payload(envelope, public_key)
    stated = _parsed(payload, "statement")
    if stated.get("_type") != STATEMENT_TYPE or stated.get("predicateType") != PREDICATE_TYPE:
        raise _invalid("statement", "it is no statement about how an artifact was made")
    if _digests(stated.get("subject")) != [_digest_set(digest)]:
        raise _invalid("subject", "it is about another artifact")
    predicate = stated.get("predicate")
    materials = _digests(predicate.get("materials")) if isinstance(predicate, dict) else []
    if len(materials) != 1 or (raw_digest is not None and materials != [_digest_set(raw_digest)]):
        raise _invalid("material", "it is made of something else")
    return stated


def _payload(envelope: bytes, public_key: bytes) -> bytes:
    """What is signed, once the signature is known to be right: nothing of it is read before."""
    if len(envelope) > ENVELOPE_BYTES_MAX:
        raise _invalid("envelope", "it is too large", limit=f"{ENVELOPE_BYTES_MAX} bytes")
    opened = _parsed(envelope, "envelope")
    signatures = opened.get("signatures")
    if opened.get("payloadType") != PAYLOAD_TYPE or not isinstance(signatures, list) or len(signatures) != 1:
        raise _invalid("envelope", "it holds no in-toto statement with one signature")
    signed = signatures[0] if isinstance(signatures[0], dict) else {}
    payload, signature = _decoded(opened.get("payload")), _decoded(signed.get("sig"))
    if signed.get("keyid") != _key_id(public_key):
        raise _invalid("signature", "it is signed with another key")
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, _signed_bytes(payload))
    except (InvalidSignature, ValueError):
        raise _invalid("signature", "the signature is not right") from None
    return payload


def _signed_bytes(payload: bytes) -> bytes:
    """What DSSE signs: type and payload, each behind its length, so that neither can pass for part of the other."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _parsed(data: bytes, check: str) -> dict[str, Any]:
    """A JSON object in its canonical form, which has one reading."""
    try:
        found = json.loads(data)
        if isinstance(found, dict) and canonical(found) == data:
            return found
    except (ValueError, RecursionError, Invalid):
        pass
    raise _invalid(check, "it is no JSON object in canonical form")


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except ValueError:
        raise _invalid("envelope", "it holds what is not base64") from None


def _digests(found: object) -> list[object]:
    return [each.get("digest") if isinstance(each, dict) else None for each in found] if isinstance(found, list) else []


def _digest_set(digest: str) -> dict[str, str]:
    return {"sha256": digest.removeprefix("sha256:")}


def _key_id(public_key: bytes) -> str:
    return "sha256:" + hashlib.sha256(public_key).hexdigest()


def _invalid(check: str, problem: str, *, limit: str | None = None) -> ArtifactInvalid:
    return ArtifactInvalid(f"The attestation does not hold: {problem}.", field=check, limit=limit, check=check)
