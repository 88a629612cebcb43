"""Comments that ask ruff for silence about more than their own line: a range, the next statement, a whole file.

Read as ruff reads them, and strictly: such a comment stands alone on its line, as deep as the block that it is in, and
names rules by their whole codes. What Python cannot cut into tokens asks for nothing.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from tokenize import COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL, TokenError, TokenInfo, generate_tokens
from typing import NamedTuple, TypeAlias

__all__ = ["Silences", "silences"]

_COMMENT = re.compile(r"#\s*ruff\s*:\s*(?P<word>disable|enable|ignore|file-ignore)\s*\[(?P<of>[^\[\]]*)\]")

_EVERY_LINE = sys.maxsize

Codes: TypeAlias = tuple[str, ...]


class Silences:
    """Where in a file which rules are asked to be silent."""

    def __init__(self, ranges: Mapping[str, Iterable[tuple[int, int]]]) -> None:
        self._ranges = {code: _apart(each) for code, each in ranges.items()}

    def about(self, code: str, first: int, last: int) -> bool:
        """Whether a finding of this rule, from its first line to its last, lies in such a place."""
        ranges = self._ranges.get(code, [])
        at = bisect_right(ranges, first, key=lambda each: each[0])
        return at > 0 and last <= ranges[at - 1][1]


class _Comment(NamedTuple):
    """A comment that stands alone: its line, what is before it on that, what it asks, of which rules."""

    line: int
    indent: str
    word: str
    codes: Codes


@dataclass(slots=True)
class _Block:
    """A block of the source, and the lines since which rules are disabled in it."""

    indent: str
    disabled: dict[Codes, list[int]] = field(default_factory=lambda: defaultdict(list))


def silences(lines: Sequence[str]) -> Silences:
    """What the comments of a file ask, whose lines have their line feeds."""
    if not any(_COMMENT.search(line) for line in lines):
        return Silences({})
    reader = _Reader()
    given = iter([line if at else line.removeprefix("\ufeff") for at, line in enumerate(lines)])
    with suppress(TokenError, SyntaxError):
        for token in generate_tokens(lambda: next(given, "")):
            reader.take(token)
        return Silences(reader.found)
    return Silences({})


class _Reader:
    """Follows the tokens of a file. In which block a comment is, the next statement tells, or the end of the block."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._blocks = [_Block("")]
        self._waiting: list[_Comment] = []
        self._next: list[Codes] = []
        self._begun_at: int | None = None
        """The first line of the statement that is being read."""

    def take(self, token: TokenInfo) -> None:
        """One token more."""
        line = token.start[0]
        if token.type == COMMENT:
            self._heard(token)
        elif token.type == INDENT:
            self._settle(into_statement=False)
            self._blocks.append(_Block(token.string))
        elif token.type in (DEDENT, ENDMARKER):
            self._settle(into_statement=False)
            for codes, begun in self._blocks.pop().disabled.items():
                self._keep(codes, begun, line - 1)
        elif token.type == NEWLINE:
            for codes in self._next:
                self._keep(codes, [self._begun_at or line], line)
            self._next, self._begun_at = [], None
        elif token.type != NL:
            self._settle(into_statement=self._begun_at is None)
            self._misplaced(line)
            self._begun_at = self._begun_at or line

    def _heard(self, token: TokenInfo) -> None:
        before = token.line[: token.start[1]]
        asked = _COMMENT.match(token.string)
        if asked and not before.strip():
            codes = tuple(code for each in asked["of"].split(",") if (code := each.strip()))
            self._waiting.append(_Comment(token.start[0], before, asked["word"], codes))

    def _settle(self, *, into_statement: bool) -> None:
        """Heed the comments that are as deep as the block which goes on or ends here, before a statement or within."""
        block = self._blocks[-1]
        for each in self._waiting:
            if each.indent != block.indent:
                continue
            if each.word == "disable":
                block.disabled[each.codes].append(each.line)
            elif each.word == "enable":
                self._enabled(block, each)
            elif each.word == "ignore" and into_statement:
                self._next.append(each.codes)
            elif each.word == "file-ignore" and not block.indent:
                self._keep(each.codes, [1], _EVERY_LINE)
        self._waiting = [each for each in self._waiting if each.indent != block.indent]

    def _misplaced(self, line: int) -> None:
        """Of what is as deep as no block that it could be in, only that is heeded which asks for less silence.

        But within brackets, where all is as deep as it likes, `ignore` is about the next line.
        """
        for each in self._waiting:
            if each.word == "ignore" and self._begun_at is not None:
                self._keep(each.codes, [line], line)
            elif each.word == "enable":
                for block in self._blocks:
                    if block.indent == each.indent:
                        self._enabled(block, each)
        self._waiting.clear()

    def _enabled(self, block: _Block, comment: _Comment) -> None:
        if block.disabled.get(comment.codes):
            self._keep(comment.codes, [block.disabled[comment.codes].pop()], comment.line)

    def _keep(self, codes: Codes, begun: Iterable[int], last: int) -> None:
        for code in codes:
            self.found[code] += [(first, last) for first in begun]


def _apart(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same lines in ranges that do not meet, in their order."""
    apart: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if apart and first <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(last, apart[-1][1])
        else:
            apart.append((first, last))
    return apart
