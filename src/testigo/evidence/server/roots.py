"""What a server was started with, and nothing that it is asked adds to: where it looks, and whose Python it runs.

A request names a tree, and may name a report and an environment. Whoever may submit jobs writes requests, so none of
them is a reason to read a folder, or to run what lies in one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testigo.errors import Invalid
from testigo.evidence.beneath import Place
from testigo.evidence.transport.request import Request

__all__ = ["Granted"]

_READ = "file"
_RUN = "environment"


@dataclass(frozen=True, slots=True)
class Granted:
    """The folders and reports at which a server looks (`--root`), and environments by their names (`--environment`).

    The roots are what `Path.resolve` makes of them; without any it looks nowhere, and without environments it runs the
    Python of none.
    """

    roots: tuple[Path, ...] = ()
    environments: Mapping[str, Path] = field(default_factory=dict)

    def check(self, request: Request) -> None:
        """Raise `Invalid` by field for a request of which something is not granted."""
        self.tree(request)
        self.report(request)
        self.options(request)

    def tree(self, request: Request) -> Place:
        """Where the tree of a request is, by what lies there and not by the links that lead there."""
        return self._place(request.root, "root")

    def report(self, request: Request) -> Place | None:
        """Where the report is that an option names, likewise."""
        named = request.options.get(_READ)
        return None if named is None else self._place(named, f"options.{_READ}")

    def options(self, request: Request) -> dict[str, str]:
        """The options of a request, with the folder of the environment that is named, if one is."""
        options = dict(request.options)
        if _RUN in options:
            folder = self.environments.get(options[_RUN])
            if folder is None:
                raise Invalid(
                    "The server runs no Python of that name.",
                    field=f"options.{_RUN}",
                    limit=f"one of: {', '.join(self.environments) or 'none'}",
                    remedy="Start the server with --environment NAME=DIR, and ask for NAME.",
                )
            options[_RUN] = str(folder)
        return options

    def to_json(self) -> dict[str, Any]:
        """It as JSON."""
        environments = {name: str(folder) for name, folder in self.environments.items()}
        return {"roots": list(map(str, self.roots)), "environments": environments}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Granted:
        """What `to_json` made JSON of."""
        environments = {name: Path(folder) for name, folder in told["environments"].items()}
        return cls(tuple(map(Path, told["roots"])), environments)

    def _place(self, path: str, field: str) -> Place:
        real = Path(os.path.realpath(path))
        for root in self.roots:
            if real.is_relative_to(root):
                return Place(root, real.relative_to(root).parts)
        raise Invalid(
            "The server does not look there.",
            field=field,
            limit=f"below {', '.join(map(str, self.roots)) or 'no folder'}",
            remedy="Name what lies there, or start the server with another --root.",
        )
