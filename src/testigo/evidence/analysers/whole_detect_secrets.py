"""detect-secrets as a program that passes over no file by the ending of its name; `DetectSecrets` runs this file.

It has a filter for endings that no option takes away, and among them are `.css`, `.svg`, `.map` and `.lock`.
"""

from __future__ import annotations

import multiprocessing
import sys

from detect_secrets.filters import heuristic
from detect_secrets.main import main

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")  # so that it holds for the processes that it starts
    heuristic.IGNORED_FILE_EXTENSIONS.clear()
    sys.exit(main())
