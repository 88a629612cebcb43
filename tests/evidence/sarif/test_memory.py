"""Reading a report takes the memory of its rules and of one result, whatever its size (issue 6)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.evidence.reports import result

READER = """
import resource, sys
from pathlib import Path
from testigo.evidence.sarif import read
print(sum(1 for _ in read(Path(sys.argv[1]), roots=("/work/shop",))))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1024**2))
"""
FLOWS = [{"threadFlows": [{"locations": [{"message": "y" * 400}] * 10}]}]


def read_apart(path: Path, results: int) -> int:
    """Write a report of that many results, read it in a process of its own: the megabytes that this took."""
    with path.open("w") as file:
        file.write('{"version": "2.1.0", "runs": [{"results": [')
        for number in range(results):
            found = result(f"m{number % 90}.py", number + 1, codeFlows=FLOWS, message={"text": f"no {number}"})
            file.write(("," if number else "") + json.dumps(found))
        file.write('], "tool": {"driver": {"name": "t"}}}]}')
    done = subprocess.run([sys.executable, "-c", READER, str(path)], check=True, capture_output=True, text=True)
    read, megabytes = map(int, done.stdout.split())
    assert read == results
    return megabytes


def test_ten_times_the_results_take_no_more_memory(tmp_path: Path) -> None:
    """A report of 40 MB is read with what one of 4 MB takes, but for what an allocator keeps."""
    small = read_apart(tmp_path / "small.sarif", 900)
    large = read_apart(tmp_path / "large.sarif", 9_000)
    assert (tmp_path / "large.sarif").stat().st_size > 35_000_000
    assert large - small < 16
