"""SARIF 2.1.0, read as it is found: what other tools wrote, however they understood the standard.

A report of any size is gone through twice, with memory for its rules and its names of files, never for its results.
What a tool left out is replaced by a stated default (see `results` and `places`); what would make two readers
disagree, or names a file outside the tree, is refused.
"""

from testigo.evidence.sarif.reader import read
from testigo.evidence.sarif.tools import TOOL, tools

__all__ = ["TOOL", "read", "tools"]
