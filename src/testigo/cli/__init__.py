"""The command line: a door for people and scripts, with the same commands behind it as any other.

A module per noun. Nothing of the database is imported before a command needs it, so that help and
completion answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from testigo.cli.leaving import leaving_in_order
from testigo.cli.loading import load_at_once

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status: 0, 2 for a misuse, an error's own from 10, 130 for Ctrl-C.

    Whatever asks it to end, it takes down what is its own: an embedded server would go on without anybody.
    """
    load_at_once()
    try:
        with leaving_in_order():
            from testigo.cli.root import run

            status = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)
