"""Secrets are taken out by form, by name, split and encoded; code that only speaks of them stays to be read."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testigo.rules.evidence import redaction
from testigo.rules.evidence.encodings import ESCAPE, may_be_escaped
from testigo.rules.evidence.patterns import longest_word, of_patterns
from testigo.rules.evidence.redaction import hide_named, is_clean, redact, redact_tree

RANDOM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

TOKENS = {
    "aws-key-id": "AKIA" + "IOSFODNN7EXAMPLE",
    "github-token": "ghp_" + RANDOM,
    "gitlab-token": "glpat-" + RANDOM[:20],
    "slack-token": "xoxb-" + "123456789012-" + RANDOM[:24],
    "google-key": "AIza" + RANDOM[:35],
    "google-token": "ya29." + RANDOM,
    "google-secret": "GOCSPX-" + RANDOM[:28],
    "stripe-key": "sk_live_" + RANDOM[:24],
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + RANDOM,
    "npm-token": "npm_" + RANDOM,
    "pypi-token": "pypi-" + RANDOM * 2,
    "huggingface-token": "hf_" + RANDOM,
    "sendgrid-key": "SG." + RANDOM[:22] + "." + RANDOM,
    "telegram-token": "123456789:AA" + RANDOM,
    "digitalocean-token": "dop_v1_" + "0a" * 32,
    "shopify-token": "shpat_" + "0a" * 16,
    "databricks-token": "dapi" + "0a" * 16,
    "docker-token": "dckr_pat_" + RANDOM,
    "vault-token": "hvs." + RANDOM,
    "twilio-key": "SK" + "0a" * 16,
    "ai-key": "sk-" + RANDOM,
    "age-key": "AGE-SECRET-KEY-1" + "QZ" * 29,
}

CUT = {
    "aws-key-id": 12, "github-token": 14, "gitlab-token": 13, "slack-token": 9, "google-key": 15, "docker-token": 16,
    "vault-token": 12, "age-key": 30,
}  # fmt: skip
"""How many letters of a token a line may show that is cut, too few for its form."""

KEY = "-----BEGIN {}PRIVATE KEY{}-----\n" + "\n".join([RANDOM + RANDOM[:28]] * 3) + "\n-----END {}PRIVATE KEY{}-----"

ASSIGNED = [
    'password = "{}"',
    "password='{}'",
    'password: str = "{}"',
    "password = b'{}'",
    'password = """{}"""',
    'connect(host="h", password="{}")',
    'config["password"] = "{}"',
    'os.environ["DB_PASSWORD"] = "{}"',
    'os.getenv("PASSWORD", "{}")',
    'if password == "{}":',
    '{{"password": "{}"}}',
    '{{\n  "password"\n  : \n  "{}"\n}}',
    '"{{\\"password\\": \\"{}\\"}}"',
    "password: {}",
    "  - db_password: '{}'",
    "PASSWORD={}",
    "export DB_PASS={}",
    "ENV DB_PASSWORD={}",
    "db.password={}",
    "<password>{}</password>",
    '<add key="Password" value="{}" password="{}"/>',
    'String password = "{}";',
    'private static final String DB_PASSWORD = "{}";',
    "const dbPassword = `{}`;",
    "let password: string = '{}';",
    'let password: &str = "{}";',
    'password := "{}"',
    ":password => '{}'",
    "$password = '{}';",
    "define('DB_PASSWORD', '{}');",
    '#define PASSWORD "{}"',
    'user.setPassword("{}");',
    "CREATE USER a IDENTIFIED BY '{}'",
    "ALTER ROLE a PASSWORD '{}'",
    "mysql --user a --password {} db",
    "Server=s;Database=d;User Id=u;Password={};",
    "host=h password={} dbname=d",
    "AccountName=a;AccountKey={};",
    "Possible hardcoded password: '{}'",
    'client_secret = "{}"',
    'PASSPHRASE="{}"',
    "https://user:{}@example.org/x",
    "postgresql+psycopg://user:{}@db:5432/x",
    "https://{}:@example.org/x",
]

STAYS = [
    "password = get_password()",
    "password = os.environ['DB_PASSWORD']",
    "self.password = password",
    "password = self.password",
    "connect(password=password)",
    "def login(user: str, password: str, token: str) -> None:",
    "password: ${PASSWORD}",
    'f"postgres://{user}:{password}@{host}"',
    "token = next(tokens)",
    '"token": "identifier"',
    'assert token.type == "NAME"',
    "if not password:\n    pass\nname = 'x'",
    "test_password_validation_2fa_setup_for_everyone()",
    'Possible hardcoded password assigned to: "password"',
    "bearer authentication is a basic understanding",
    "the bypass compares the compass",
    "https://example.org:8080/path@2x?x=1",
    "import secrets\nfrom tokenize import tokenize",
    "src/testigo/rules/evidence/redaction.py",
    "sha256:" + "0a" * 32,
    "",
]


@pytest.mark.parametrize(("kind", "token"), TOKENS.items(), ids=TOKENS)
def test_known_tokens_go_wherever_they_stand(kind: str, token: str) -> None:
    """Alone, within a sentence, within code: the marker says what it was (spec D-14)."""
    for text in ("{}", "found {} in line 3", 'use("{}")', "a={}&b=1"):
        assert redact(text.format(token)) == text.format(f"[redacted:{kind}]")


@pytest.mark.parametrize(("kind", "token"), TOKENS.items(), ids=TOKENS)
@pytest.mark.parametrize(
    "join", ['" \\\n    "', '" +\n    "', '"\n    + "', "'\n  '", "\\\n", "\n    ", '" + "', '" . "']
)
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_known_tokens_go_when_they_are_split(kind: str, token: str, join: str, share: float) -> None:
    """Over joined strings, continued and wrapped lines; lines keep their numbers (spec D-14)."""
    at = int(len(token) * share)
    text = f'first = 1\nx = ("{token[:at]}{join}{token[at:]}")\nlast = 2'
    if join == "\n    ":
        text = f"first = 1\n{token[:at]}{join}{token[at:]}\nlast = 2"
    clean = redact(text)
    assert token[:at][-8:] not in clean
    assert token[at:][:8] not in clean
    assert clean.count("\n") == text.count("\n")
    assert clean.startswith("first = 1\n")
    assert clean.endswith("\nlast = 2")


@pytest.mark.parametrize("kind", CUT)
@pytest.mark.parametrize("end", ["", "...", "…", "\n"])
def test_a_token_that_a_border_cuts_is_taken_out(kind: str, end: str) -> None:
    """What a tool shows of a line ends in it; in the middle of a text so few letters are no secret."""
    part = TOKENS[kind][: CUT[kind]]
    assert redact(f"x({part}{end}").startswith("x([redacted:cut-token]")
    assert redact(f"what begins with {part} is one") == f"what begins with {part} is one"


def test_a_comment_between_its_pieces_hides_no_token() -> None:
    """As where each piece has a line of its own."""
    token = TOKENS["github-token"]
    text = f'k = ("{token[:12]}"  # one half\n     "{token[12:]}")'
    assert redact(text) == 'k = ("[redacted:github-token]\n")'


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("text", ["{}", "x {} y", 'password = "{}"', "GET /x?key={}"])
def test_known_tokens_go_when_they_are_encoded(token: str, encode: Any, text: str) -> None:
    """In base64, once, in both alphabets, with padding and without (spec D-14)."""
    encoded = encode(text.format(token).encode()).decode()
    for form in (encoded, encoded.rstrip("=")):
        assert redact(f"a {form} b") == "a [redacted:encoded] b"


ESCAPES = [
    "%{:02x}",
    "%{:02X}",
    r"\x{:02x}",
    r"\u{:04x}",
    r"\u{{{:x}}}",
    r"\{:03o}",
    "&#{:d};",
    "&#x{:x};",
    "&#X{:04X};",
]
"""How one character of ASCII is written: in an address, in code, in HTML."""


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_known_tokens_go_when_their_characters_are_escaped(token: str) -> None:
    """All, every other one, or those that are no letters and digits; what stands around stays (spec D-14)."""
    every, marks = range(len(token)), {n for n, character in enumerate(token) if not character.isalnum()}
    for form, written in product(ESCAPES, (every, every[1::2], marks)):
        escaped = "".join(form.format(ord(each)) if n in written else each for n, each in enumerate(token))
        for before, after in (("", ""), ('see "', '" there'), ("/x?key=", "&y=1")):
            clean = redact(before + escaped + after)
            assert clean.startswith(f"{before}[redacted:")
            assert clean.endswith(f"]{after}")
            assert clean.count("]") == 1


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_known_tokens_go_when_they_are_hexadecimal(token: str) -> None:
    """Whatever digits stand before them; the whole run goes (spec D-14)."""
    for said, before in product((token, f"password={token}"), ("", "0x", "a", "ab", "0", "key_", "/")):
        for digits in (said.encode().hex(), said.encode().hex().upper()):
            assert redact(f"x {before}{digits} y") == "x [redacted:encoded] y"


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_known_tokens_go_in_the_middle_of_what_is_encoded(token: str) -> None:
    """Letters that are none of its own stand before it, or bytes that are no text (spec D-14)."""
    for before in ("a", "ab", "abc", "/api/v1/", "user_"):
        encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
        assert redact(f"x {before}{encoded} y") == "x [redacted:encoded] y"
    for bytes_before in (b"\xff", b"\xff\xfe", b"\xff\xfe\xfd", b"\x00" * 7):
        encoded = base64.b64encode(bytes_before + f"password='{token}'".encode()).decode()
        assert redact(f"x {encoded} y") == "x [redacted:encoded] y"


@settings(deadline=None)
@given(st.binary(min_size=10, max_size=64))
def test_what_chance_makes_is_no_secret_in_hexadecimal(data: bytes) -> None:
    """A digest, a key's fingerprint, the id of a thing: whoever reviews has to read it (spec D-14)."""
    if re.search(rb"[\t\n\r\x20-\x7e]{10}", data):  # else it is text
        return
    for digits in (data.hex(), data.hex().upper(), data.hex(":")):
        for text in (digits, f"sha256:{digits}", f"https://example.org/a%20b/{digits}?c=%2Fd"):
            assert redact(text) == text
            assert is_clean(text)


def test_digests_and_ids_stay() -> None:
    """In hexadecimal, in base64, and as UUIDs (spec D-14)."""
    for n, name in product(range(50), ("md5", "sha1", "sha256", "sha512")):
        digest = hashlib.new(name, bytes(n), usedforsecurity=False)
        in_base64 = base64.b64encode(digest.digest()).decode()
        for form in (digest.hexdigest(), in_base64, str(uuid.UUID(bytes=digest.digest()[:16]))):
            assert redact(f"{name}-{form}, and") == f"{name}-{form}, and"


@pytest.mark.parametrize("secret", ["hunter2x", "correct-horse-7", RANDOM])
@pytest.mark.parametrize("text", ASSIGNED)
def test_what_is_called_a_password_is_one(text: str, secret: str) -> None:
    """In many languages and formats, whatever it looks like (spec D-14)."""
    clean = redact(text.format(*[secret] * text.count("{}")))
    assert secret not in clean
    assert "[redacted:" in clean
    assert clean.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {RANDOM}",
        f"authorization: Basic {base64.b64encode(b'user:pw').decode()}",
        f'headers = {{"Authorization": "token {RANDOM}"}}',
        f'curl -H "X-Api-Key: {RANDOM}"',
        f"Bearer {RANDOM}",
        f"Set-Cookie: sid={RANDOM}; Path=/",
        f"https://hooks.slack.com/services/T0/B0/{RANDOM}",
        f"https://a.blob.core.windows.net/c?sv=1&sig={RANDOM}%3D",
        f'token = fetch("{RANDOM}")',
        f"api_key: {RANDOM}",
        f'headers["X-Auth-Token"] = [wrap(wrap("{RANDOM}"))]',
        f"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY # {RANDOM}",
    ],
)
def test_headers_addresses_and_what_stands_beside_a_name_go(text: str) -> None:
    """A string as chance makes it, on a line that speaks of a token, is taken for one (spec D-14)."""
    clean = redact(text)
    assert RANDOM not in clean
    assert "wJalr" not in clean
    assert base64.b64encode(b"user:pw").decode() not in clean


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("form", ["whole", "begun", "ended", "escaped", "indented"])
def test_private_keys_go_whole_or_cut_off(kind: str, form: str) -> None:
    """A snippet may show the beginning or the end of a key alone (spec D-14)."""
    key = KEY.format(kind, "", kind, "")
    text = {
        "whole": f"a\n{key}\nb",
        "begun": "a\n" + "\n".join(key.split("\n")[:3]),
        "ended": "\n".join(key.split("\n")[2:]) + "\nb",
        "escaped": 'k = "' + key.replace("\n", "\\n") + '"',
        "indented": key.replace("\n", "\n    "),
    }[form]
    clean = redact(text)
    assert RANDOM[:12] not in clean
    assert clean.count("\n") == text.count("\n")
    assert form != "whole" or clean == "a\n[redacted:private-key]\n\n\n\n\nb"


def test_ends_of_keys_go_at_once_however_many() -> None:
    """What is clean is found to be clean."""
    ends = "-----END PRIVATE KEY-----\n" * 9
    assert redact(f"a\n{ends}b") == "[redacted:private-key]" + "\n" * 10 + "b"


@pytest.mark.parametrize("text", STAYS)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    """Expressions, types, templates and prose are what a reviewer has to read."""
    assert redact(text) == text
    assert is_clean(text)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("password", True),
        ("DB_PASS", True),
        ("dbPass", True),
        ("X-Api-Key", True),
        ("clientSecret", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("compass", False),
        ("passed", False),
        ("keyboard", False),
        ("name", False),
        ("", False),
    ],
)
def test_a_value_is_hidden_for_its_name(name: str, hidden: bool) -> None:
    """Keys of JSON and TOML and names of variables, in any case (spec D-14)."""
    assert hide_named(name, "two\nlines") == ("[redacted:named]\n" if hidden else "two\nlines")
    assert hide_named(name, "") == ""


def test_structures_are_redacted_by_their_keys_and_their_texts() -> None:
    """However deep, numbers and lists included; what is no secret keeps its type (spec D-14)."""
    token = TOKENS["github-token"]
    tree = {
        "name": "x",
        "count": 3,
        "env": {"DB_PASSWORD": "a", "PIN": [1, True, None, 2.5], "secrets": {"a": {"b": ["c", 7, None, True]}}},
        "items": [{"text": f"see {token}"}, token],
        token: "key",
    }
    assert redact_tree(tree) == {
        "name": "x",
        "count": 3,
        "env": {
            "DB_PASSWORD": "[redacted:named]",
            "PIN": [1, True, None, 2.5],
            "secrets": {"a": {"b": ["[redacted:named]", "[redacted:named]", None, True]}},
        },
        "items": [{"text": "see [redacted:github-token]"}, "[redacted:github-token]"],
        "[redacted:github-token]": "key",
    }
    assert redact_tree(redact_tree(tree)) == redact_tree(tree)
    assert token not in json.dumps(redact_tree(tree))


PIECES = [
    *TOKENS.values(), "password", " = ", '"', "'", "\n", "\\\n", " ", "hunter2", ":", "=", "(", "[redacted:jwt]",
    "token", RANDOM, "://", "@",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "é", "x", '" + "', "`", ",",
    "%3D", "%70assword", r"\x5b", "&#93;", b"password=hunter2".hex(),
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=10).map("".join))
def test_lines_keep_their_numbers_and_tokens_never_stay(text: str) -> None:
    """Whatever surrounds them; and text that is clean is told from text that is not."""
    clean = redact(text)
    assert clean.count("\n") == text.count("\n")
    assert not any(token in clean for token in TOKENS.values() if token not in (TOKENS["twilio-key"], TOKENS["ai-key"]))
    assert is_clean(text) == (clean == text)
    assert redact(clean) == clean


SHAPES = [
    *PIECES, RANDOM + RANDOM[:28], "\n" + RANDOM[:9],
    "\t", "\r\n", "\v", "\u2028", "\xa0", " \n", "+", "&", ".", "b'", "\\",
    "=" * 3, "-_", "/", base64.b64encode(b"password='hunter2'").decode(),
    b"password='hunter2'".hex(), "%70assword%3Dhunter2", r"\x70assword", "&#61;", "%", "%3D", "a",
]  # fmt: skip


@settings(deadline=None, max_examples=1_000)
@given(st.lists(st.sampled_from(SHAPES) | st.text(max_size=3), max_size=12).map("".join))
def test_what_is_not_looked_for_is_not_there(text: str) -> None:
    """Each short look that spares a long one finds all that the long one would (spec D-14)."""
    longest = longest_word(text)
    assert redaction._has_seams(text) == (redaction._SEAM.search(text) is not None)
    assert may_be_escaped(text) or ESCAPE.search(text) is None
    assert longest >= redaction._ENCODED_LEAST or redaction._ENCODED.search(text) is None
    assert sorted(of_patterns(text, longest)) == sorted(of_patterns(text, len(text)))


HOSTILE = [
    "password", 'password="', "pwd=\"pwd='pwd=`", "eyJ", "eyJ.", "-----BEGIN PRIVATE KEY-----", "://", "://a:", "A",
    "a1", " ", "\n", '"', '" "', '"\n"', "\\\n", "ghp_", "xoxa-", "sk-a", "SG.", "Bearer ", "authorization: ", "a\n",
    "a" * 60 + "\n", "password ", "password: a", "secret'''", "token ", "cookie: ", "password(((", "password]]]",
    "password a1B2c3D4e5F6g7H8i9J0\n", "sig=?", "[redacted:", "{", "${", "pass_", "password\\", "'\"", "-", "=", "\t",
    "<password>", "1//0", "5:AA", "PuTTY-User-Key-File-", "cGFzc3dvcmQ9Imh1bnRlcjIi ", "é", "password: x \n = ",
    "cGFz", "70617373776f72643d68", "7", "%70", "%", "%70assword%3d", r"\x70", "&#112;", r"\160", "xxxxcGFzc3dvcmQ9",
]  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    """64 KiB of what expressions fear, alone and after what makes them begin: a quadratic one would take minutes."""
    text = (unit * (65_536 // len(unit) + 1))[:65_536]
    for hostile in (text, 'password="' + text, "eyJ" + text):
        assert redact(hostile).count("\n") == hostile.count("\n")
