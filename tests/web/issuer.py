"""A small OpenID provider: what it says of whoever comes, and how it lies, is the test's to choose."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

__all__ = ["CLIENT_ID", "CLIENT_SECRET", "Issuer", "issuer"]

CLIENT_ID = "testigo"
CLIENT_SECRET = "client-secret"


class Issuer:
    """A provider that serves real HTTP. `claims` replace or, as None, remove what it says of everybody."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "k"})
        self.signs_with = self.key
        self.claims: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.answers = True
        self.forgets = True
        """That a code was exchanged: false, and one is worth as many logins as somebody asks for."""

    @property
    def url(self) -> str:
        """Its name, and where it is."""
        return f"http://127.0.0.1:{self.port}"

    port = 0

    def metadata(self) -> dict[str, Any]:
        """What it says of itself."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def authorized(self, asked: dict[str, str]) -> str:
        """Where a browser is sent back to, as if somebody had logged in here."""
        assert asked["client_id"] == CLIENT_ID
        assert asked["code_challenge_method"] == "S256"
        code = hashlib.sha256(asked["state"].encode()).hexdigest()
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """What a code is exchanged for, once, by who began with it."""
        asked = self.codes.get(form.get("code", ""))
        if self.forgets:
            self.codes.pop(form.get("code", ""), None)
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if asked is None or authorization != f"Basic {expected}":
            return None
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "ana",
            "nonce": asked["nonce"],
            "iat": now,
            "exp": now + 300,
            "testigo_role": "operator",
            **self.claims,
        }
        said = {name: value for name, value in claims.items() if value is not None}
        id_token = jwt.encode({"alg": "RS256", "kid": "k"}, said, self.signs_with)
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": id_token}


@contextmanager
def issuer() -> Iterator[Issuer]:
    """A provider on a free port."""
    made = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            match parts.path:
                case _ if not made.answers:
                    self._send(500, {})
                case "/.well-known/openid-configuration":
                    self._send(200, made.metadata())
                case "/jwks":
                    self._send(200, {"keys": [made.key.as_dict(private=False)]})
                case "/authorize":
                    self.send_response(302)
                    self.send_header("Location", made.authorized(asked))
                    self.end_headers()
                case _:
                    self._send(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            token = made.token(form, self.headers.get("Authorization", ""))
            self._send(400 if token is None else 200, token or {"error": "invalid_grant"})

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing."""

        def _send(self, status: int, told: dict[str, Any]) -> None:
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
