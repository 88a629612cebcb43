"""A process of a scan's crew: any module, run so that on Linux it dies with the scan even if that is killed."""

from __future__ import annotations

import runpy
import sys

from testigo.worker.leaving import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
