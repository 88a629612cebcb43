"""What users need to test their own jobs, on a real database and without a worker beside the test.

    pytest_plugins = ["testigo.testing.fixtures"]      # in conftest.py

    def test_a_video_is_transcoded(testigo):
        testigo.use(app)
        job = transcode.submit(path="a.mp4")
        app.run_until_idle()
        assert job.result(timeout=0) == ...

`run_until_idle` runs jobs in the test's own process, one at a time; `testigo.clock` moves the time for what
waits; `crash` loses a run at a chosen step, as if its process had died there.
"""

from __future__ import annotations

from testigo.testing.clock import Clock
from testigo.testing.crashes import crash
from testigo.testing.idle import run_until_idle
from testigo.testing.trial import Trial, trial

__all__ = ["Clock", "Trial", "crash", "run_until_idle", "trial"]
