"""A worker of the demo: one like any other, which on Linux dies with the demo even if that is killed."""

from __future__ import annotations

import runpy

from testigo.worker.leaving import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    runpy.run_module("testigo.worker", run_name="__main__", alter_sys=True)
