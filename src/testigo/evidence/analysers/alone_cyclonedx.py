"""cyclonedx-py as a program that reads no requirements but those of its file; `CyclonedxPy` runs this file.

Of itself it goes on to the files that this one names with `-r` and `-c`, wherever they lie, and passes over lines that
it cannot read.
"""

from __future__ import annotations

import sys
from typing import Any

from cyclonedx_py._internal import requirements
from cyclonedx_py._internal.cli import run

_File = requirements.RequirementsFile  # type: ignore[attr-defined]  # its parser's, which it calls
_read = _File.from_file


def _alone(filename: str, **_: Any) -> Any:
    """What the file says itself. Lines of which nothing comes into the bill are told on the standard error."""
    found = _read(filename, include_nested=False)
    nested = [each for each in found.options if not {"requirements", "constraints"}.isdisjoint(each.options)]
    for line in sorted({each.line_number for each in (*nested, *found.invalid_lines)}):
        sys.stderr.write(f"not in the bill: {line}\n")
    return found


if __name__ == "__main__":
    _File.from_file = _alone
    sys.exit(run(prog="cyclonedx-py"))
