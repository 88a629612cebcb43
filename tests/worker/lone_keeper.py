"""A keeper of the tests' own, as a process: it holds one job in one runner that nothing ends but a signal.

    python -m tests.worker.lone_keeper URL AGENT HOST TERM

It says a line of JSON once its runner has the job: the pids, and the session. It beats, and never settles.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from testigo.authority.actions import Action, SessionAction, new_id
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.processes import record_processes
from testigo.authority.renew import renew
from testigo.authority.sessions import NewSession, Session, open_session
from testigo.authority.start import Held
from testigo.store.database import Database
from testigo.store.embedded.processes import Process
from testigo.worker import hosts

RUNNER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def main(url: str, agent: str, host: str, term_seconds: float) -> None:
    """Open a session, start a runner, claim, and beat on."""
    with Database(url, pool_size=2) as db:
        own = hosts.own_processes([])
        new = NewSession(agent, ("q",), ("work",), term_seconds=term_seconds, host=host, processes=own)
        session = db.run(open_session, new, action=Action(agent))
        runner, child = start_runner()
        db.run(record_processes, session.id, hosts.own_processes([runner], db.backends()))
        held = take(db, session)
        print(json.dumps({"session": session.id, "runner": runner.pid, "child": child}), flush=True)
        beat = 0
        while True:
            beat += 1
            renewed = db.run(renew, session.id, held, epoch=session.epoch, beat=beat, low_water=0)
            held = [each for each in held if each not in renewed.lost]
            time.sleep(term_seconds / 10)


def start_runner() -> tuple[Process, int]:
    """A runner that outlives its keeper, and the process that it started."""
    runner: Any = subprocess.Popen(
        [sys.executable, "-c", RUNNER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "TESTIGO_RUNNER": "1"},
    )
    child = int(runner.stdout.readline())
    return Process(runner.pid, hosts.started(runner.pid) or ""), child


def take(db: Database, session: Session) -> list[Held]:
    """Claim one job, which must be there."""
    first = SessionAction(session.id, session.agent, 1)
    claimed = db.run(claim, [QueueClaim("q", 1)], ["work"], slots=1, lease_id=new_id(), action=first)
    (lease,) = claimed.leases
    return [Held(lease.job_id, lease.lease_id, lease.epoch)]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
