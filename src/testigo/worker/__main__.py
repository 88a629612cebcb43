"""The process of a worker, which `testigo worker` becomes."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    try:
        from testigo.worker.program import main

        status = main()
    except KeyboardInterrupt:  # while it is loaded: it has not begun
        status = 130
    import logging

    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for a database which is away are not waited for.
    os._exit(status)
