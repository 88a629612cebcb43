"""What was made of what is signed by the installation, and nothing else passes for it (spec D-15)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from testigo.errors import ArtifactInvalid
from testigo.evidence.sbom.attest import Signer, statement, verify
from testigo.rules.identity import canonical
from testigo.store.keys import Keyring

ARTIFACT, RAW, OTHER = (f"sha256:{digit * 64}" for digit in "abc")


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """The key of an installation."""
    return Signer.of(Keyring.open(tmp_path / "keys"))


def envelope(signer: Signer, **changed: Any) -> bytes:
    """A signed statement about ARTIFACT, made of RAW; `changed` are members of the statement."""
    return signer.envelope(
        {**statement("sbom.cdx.json", digest=ARTIFACT, raw_digest=RAW, notes={"cleaned": 2}), **changed}
    )


def failed(envelope: bytes, signer: Signer, *, digest: str = ARTIFACT, raw_digest: str | None = RAW) -> str:
    """The check that refuses the envelope."""
    with pytest.raises(ArtifactInvalid) as raised:
        verify(envelope, signer.public_key, digest=digest, raw_digest=raw_digest)
    assert raised.value.field is not None
    return raised.value.field


def test_what_is_signed_is_verified_again(tmp_path: Path, signer: Signer) -> None:
    """The statement names the artifact and what it was made of; the key outlives the process."""
    signed = envelope(signer)
    again = Signer.of(Keyring.open(tmp_path / "keys"))
    stated = verify(signed, again.public_key, digest=ARTIFACT, raw_digest=RAW)
    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    assert stated["subject"] == [{"name": "sbom.cdx.json", "digest": {"sha256": "a" * 64}}]
    assert stated["predicate"]["materials"] == [{"name": "raw", "digest": {"sha256": "b" * 64}}]
    assert stated["predicate"]["byproducts"] == {"cleaned": 2}
    assert verify(signed, again.public_key, digest=ARTIFACT) == stated


def test_the_same_statement_gives_the_same_envelope(signer: Signer) -> None:
    """Ed25519 leaves nothing to chance, so an envelope has one digest."""
    assert envelope(signer) == envelope(signer)


def test_the_envelope_is_as_others_read_it(signer: Signer) -> None:
    """DSSE: the signature is over the type and the payload, each behind its length."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    opened = json.loads(envelope(signer))
    payload = base64.b64decode(opened["payload"])
    signed = b"DSSEv1 28 application/vnd.in-toto+json " + str(len(payload)).encode() + b" " + payload
    Ed25519PublicKey.from_public_bytes(signer.public_key).verify(
        base64.b64decode(opened["signatures"][0]["sig"]), signed
    )


def test_each_check_refuses_alone(tmp_path: Path, signer: Signer) -> None:
    """Another artifact, another material, another key, another statement: each by its name."""
    other = Signer.of(Keyring.open(tmp_path / "others"))
    assert failed(envelope(signer), signer, digest=OTHER) == "subject"
    assert failed(envelope(signer), signer, raw_digest=OTHER) == "material"
    assert failed(envelope(other), signer) == "signature"
    assert failed(envelope(signer, _type="another"), signer) == "statement"
    assert failed(envelope(signer, predicateType="another"), signer) == "statement"
    assert failed(envelope(signer, subject=[]), signer) == "subject"
    assert failed(envelope(signer, predicate=None), signer) == "material"
    assert failed(b" " * 100_000, signer) == "envelope"


def changed(signed: bytes, **members: Any) -> bytes:
    """The envelope with other members, in canonical form."""
    return canonical({**json.loads(signed), **members})


def test_an_envelope_that_was_touched_is_refused(tmp_path: Path, signer: Signer) -> None:
    """Payload, signature, key id, type and form: whatever is touched does not hold."""
    signed = envelope(signer)
    opened = json.loads(signed)
    [signature] = opened["signatures"]
    payload = base64.b64encode(base64.b64decode(opened["payload"]) + b" ").decode()
    other = Signer.of(Keyring.open(tmp_path / "others"))
    assert failed(changed(signed, payload=payload), signer) == "signature"
    assert failed(changed(signed, payload="%%%"), signer) == "envelope"
    assert failed(changed(signed, payload=7), signer) == "signature"
    assert failed(changed(signed, payloadType="text/plain"), signer) == "envelope"
    assert failed(changed(signed, signatures=[]), signer) == "envelope"
    assert failed(changed(signed, signatures=[signature, signature]), signer) == "envelope"
    assert failed(changed(signed, signatures=["x"]), signer) == "signature"
    assert failed(changed(signed, signatures=[{**signature, "sig": "AAAA"}]), signer) == "signature"
    assert failed(envelope(other), other, digest=OTHER) == "subject"
    assert failed(json.dumps(opened, indent=1).encode(), signer) == "envelope"
    assert failed(signed[:-1], signer) == "envelope"
    assert failed(b"[]", signer) == "envelope"


def test_the_key_is_not_shown(signer: Signer) -> None:
    """Neither repr nor envelope holds it."""
    assert "Private" not in repr(signer)
