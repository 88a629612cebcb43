"""Measure this machine: a table on the terminal, and the same as JSON.

python -m bench [--scale 0.1] [--only submit] [--json FILE]
python -m bench --panel     the readings, pages and lists instead, with a million jobs: it takes some minutes
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench.authority import ROWS as AUTHORITY
from bench.evidence import ROWS as EVIDENCE
from bench.harness import Row
from bench.panel import ROWS as PANEL
from bench.worker import ROWS as WORKER
from testigo.store.embedded import EmbeddedServer

RESULTS = Path(__file__).with_name("results")


def main() -> int:
    """Run the rows one after another; 0 even where a goal is missed, since machines differ."""
    options = _options()
    rooms = PANEL if options.panel else (*AUTHORITY, *WORKER, *EVIDENCE)
    chosen = [measure for measure in rooms if options.only in measure.__name__]
    directory = Path(tempfile.mkdtemp(prefix="testigo-bench-"))
    rows: list[Row] = []
    print(f"{'':44} {'measured':>10}  {'unit':22} {'goal':>8}")
    try:
        with EmbeddedServer.use(directory / "server") as embedded:
            for measure in chosen:
                for row in measure(embedded.url, options.scale):
                    rows.append(row)
                    print(_line(row), flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    written = _write(rows, options.json, options.scale)
    print(f"\nwritten to {written}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure what testigo costs on this machine.")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of jobs (default 1.0)")
    parser.add_argument("--only", default="", metavar="WORD", help="only rows whose function has this in its name")
    parser.add_argument("--panel", action="store_true", help="only what panel and API read, with a million jobs")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="where to write the figures")
    return parser.parse_args()


def _line(row: Row) -> str:
    goal = "" if row.goal is None else f"{row.goal:,.0f}"
    mark = {None: "", True: "met", False: "missed"}[row.met]
    return f"{row.name:44} {row.value:>10,.0f}  {row.unit:22} {goal:>8}  {mark}"


def _write(rows: list[Row], path: Path | None, scale: float) -> Path:
    now = datetime.now(UTC)
    target = path or RESULTS / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    members = [{"name": r.name, "value": r.value, "unit": r.unit, "goal": r.goal, "met": r.met} for r in rows]
    machine = {"system": platform.platform(), "python": sys.version.split()[0], "cores": os.cpu_count()}
    target.write_text(
        json.dumps({"at": now.isoformat(), "scale": scale, "machine": machine, "rows": members}, indent=2)
    )
    return target


if __name__ == "__main__":
    sys.exit(main())
