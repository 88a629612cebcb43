"""Text that stands there in another form: in base64 or hexadecimal, or letter by letter as addresses and code have it.

It is decoded once. What chance makes, such as a digest, stands for no readable text, and is not looked at further. Time
is linear in the text, whatever it is.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterator

__all__ = ["ESCAPE", "decoded", "may_be_escaped", "said_by", "unescaped"]

_ALPHABET = str.maketrans("-_", "+/")
_NO_WHITE = str.maketrans("", "", "\t\n\r")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

_READABLE = re.compile(rb"[\t\n\r\x20-\x7e]{10,}+")
_HEX_LEAST = 20
_HEX = re.compile(rf"[0-9A-Fa-f]{{{_HEX_LEAST},}}+")


_FIRST = "".join(letter for n, letter in enumerate(_LETTERS) if 2 <= n < 32)
_SECOND = "".join(letter for n, letter in enumerate(_LETTERS) if n & 15 < 8)
_THIRD = "".join(letter for n, letter in enumerate(_LETTERS) if n & 3 < 2)
"""What four letters of base64 begin with that stand for three characters of ASCII, the first no rare one."""
_SEEMS_BASE64 = re.compile(f"(?:[{_FIRST}][{_SECOND}][{_THIRD}_-][A-Za-z0-9+/_-]){{2}}")
_SEEMS_HEX = re.compile(r"(?:[2-7][0-9A-Fa-f]|0[9AaDd]){10}")
"""What chance makes hardly ever has either, and text that is encoded always."""

_CHARACTER = "[2-6][0-9A-Fa-f]|7[0-9A-Ea-e]"
ESCAPE = re.compile(
    rf"%({_CHARACTER})|\\x({_CHARACTER})|\\u00({_CHARACTER})|\\u\{{0{{0,4}}({_CHARACTER})\}}|&#[xX]0{{0,4}}({_CHARACTER});"
    r"|&#0{0,4}(3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]);|\\(0[4-7][0-7]|1[0-6][0-7]|17[0-6])"
)
"""One printable character of ASCII: in a URL, in a string of C, Python or JavaScript, in HTML."""
_BASES = (16, 16, 16, 16, 16, 10, 8)


def decoded(text: str) -> str | None:
    """What letters of either alphabet of base64 stand for, or None where that is no readable text."""
    letters = text.rstrip("=").translate(_ALPHABET)
    if len(letters) % 4 == 1:
        return None
    said = a2b_base64(letters + "=" * (-len(letters) % 4)).decode(errors="replace")
    return said if "\ufffd" not in said and said.translate(_NO_WHITE).isprintable() else None


def said_by(run: str) -> Iterator[str]:
    """The readable texts that a run of letters stands for, or a part of it: what begins in it may begin anywhere."""
    if _SEEMS_BASE64.search(run):
        if whole := decoded(run):
            yield whole
        else:
            letters = run.rstrip("=").translate(_ALPHABET)
            for at in range(4):
                part = letters[at : len(letters) - ((len(letters) - at) % 4 == 1)]
                yield from _readable(a2b_base64(part + "=" * (-len(part) % 4)))
    if len(run) >= _HEX_LEAST and _SEEMS_HEX.search(run):
        for digits in _HEX.findall(run):
            for at in range(2):
                yield from _readable(bytes.fromhex(digits[at : len(digits) - (len(digits) - at) % 2]))


def may_be_escaped(text: str) -> bool:
    """Whether `ESCAPE` may find something."""
    return "%" in text or "\\" in text or "&#" in text


def unescaped(escape: re.Match[str]) -> str:
    """The character that it stands for."""
    n = escape.lastindex or 1
    return chr(int(escape[n], _BASES[n - 1]))


def _readable(data: bytes) -> Iterator[str]:
    return (found[0].decode("ascii") for found in _READABLE.finditer(data))
