"""detect-secrets: what looks like a secret, without asking any service whether it is one.

Its report holds an unsalted digest of each secret, from which a short one can be found by trying; it is dropped. So is
every line that holds one: these findings have no snippet, and their identity is made of rule, path and number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from testigo.evidence.analysers.comments import IN_SOURCE, asks
from testigo.evidence.analysers.model import Bounds, Command, Ended, Task
from testigo.evidence.analysers.programs import ODD, dotted, environment, installed, program
from testigo.evidence.analysers.sources import Sources
from testigo.evidence.reported import Reading, Unread
from testigo.evidence.streaming import Source, Walk
from testigo.rules.evidence import severity
from testigo.rules.evidence.paths import of_path
from testigo.rules.evidence.sealing import Draft
from testigo.rules.evidence.severity import Severity

__all__ = ["DetectSecrets"]

GUESSED = frozenset({"Base64 High Entropy String", "Hex High Entropy String", "Secret Keyword"})
"""What is told by its randomness or by the word beside it, and not by its form."""

LOCK_FILES = frozenset(
    {"Brewfile.lock.json", "Cargo.lock", "Cartfile.resolved", "Gemfile.lock", "Package.resolved", "Pipfile.lock"}
    | {"Podfile.lock", "composer.lock", "go.sum", "package-lock.json", "packages.lock.json", "pnpm-lock.yaml"}
    | {"poetry.lock", "uv.lock", "yarn.lock"}
)
"""They hold digests by the thousand, each of which looks like a secret."""

NO_TEXT = frozenset(
    {".7z", ".bin", ".bz2", ".class", ".dll", ".dylib", ".eot", ".exe", ".gif", ".gz", ".ico", ".jar", ".jpeg", ".jpg"}
    | {".mo", ".mp3", ".mp4", ".o", ".otf", ".pdf", ".png", ".pyc", ".so", ".sqlite", ".tar", ".tiff", ".ttf", ".webp"}
    | {".whl", ".woff", ".woff2", ".xz", ".zip", ".zst"}
)
"""What no line can be read of, by its name."""

WHOLE = Path(__file__).with_name("whole_detect_secrets.py")
_SILENT = ("allowlist.is_line_allowlisted", "heuristic.is_lock_file", "heuristic.is_swagger_file")
"""Filters that pass over files by their name, and over lines by what a comment says."""
_ALLOWED = re.compile(r"pragma: ?(?:allow|white)list[ -]secret")
_NEXT_ALLOWED = re.compile(r"pragma: ?allowlist[ -]nextline[ -]secret")


class DetectSecrets:
    """Runs detect-secrets of our own environment, in one process."""

    name = "detect-secrets"
    bounds = Bounds(seconds=900)

    def version(self) -> str:
        """The version of detect-secrets. Raises NotFound if it is not installed."""
        return installed("detect-secrets")

    def takes(self, path: str) -> bool:
        """Every file but those of digests and those that are no text, which its scope does not include."""
        file = PurePosixPath(path)
        return file.name not in LOCK_FILES and file.suffix.lower() not in NO_TEXT

    def command(self, task: Task) -> Command | None:
        """Filters that pass over files and lines in silence are off: what is in scope is looked at."""
        if not task.files:
            return None
        options = [f"--disable-filter=detect_secrets.filters.{each}" for each in _SILENT]
        args = program(WHOLE, "--cores", "1", "scan", "--no-verify", *options, *dotted(task.files))
        return Command(args, environment=environment(task.work))

    def read(self, task: Task, ended: Ended | None) -> Iterator[Reading]:
        """Each finding, then as failed the files of which it saw no line."""
        sources = Sources(task.root)
        if ended is not None:
            root = str(task.root.resolve())
            with Source(ended.stdout, name="detect-secrets' report") as source:
                walk = Walk(source)
                for member in walk.members():
                    if member == "results":
                        for file in walk.members():
                            path = of_path(file, root=root)
                            yield from (_draft(walk, walk.value(), path, sources) for _ in walk.elements())
                walk.finish()
        for file in task.files:
            if reason := _unread(sources, file):
                yield Unread(file, reason, failed=True)


def _unread(sources: Sources, file: str) -> str | None:
    """Why it saw no line of a file, which it does not say itself: it opens files as we do, and leaves others."""
    try:
        sources.text(file)
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return None


def _draft(walk: Walk, found: Any, path: str, sources: Sources) -> Draft:
    try:
        kind, line = found["type"], found["line_number"]
        *before, own = ["", "", *sources.every(path)[max(0, line - 2) : line]][-2:]
        is_asked = asks(_ALLOWED, [own]) or asks(_NEXT_ALLOWED, before)
        how_bad = Severity.MEDIUM if kind in GUESSED else Severity.HIGH
        return Draft(
            analyser=DetectSecrets.name,
            rule=kind,
            severity=how_bad,
            level=severity.level_of(how_bad),
            message=f"This line seems to hold a secret: {kind}",
            path=path,
            line=line,
            suppressed=is_asked,
            metadata=IN_SOURCE if is_asked else {},
        )
    except ODD as error:
        raise walk.refused(f"detect-secrets writes this otherwise: {error!r:.100}") from error
