"""What a job of a scan says that it left undone: its code and its words, in one line without secrets (spec D-24)."""

from __future__ import annotations

import pytest

from testigo.errors import Busy
from testigo.scan.jobs import limitation
from testigo.worker.endings import Degraded

SECRET = "password='hunter2hunter2'"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("The server does not answer.", "not analysed: BUSY: The server does not answer."),
        (f"It says:\n  {SECRET}\u2028and more", "not analysed: BUSY: It says: password='[redacted:password]' and more"),
        ("\x00\ud800", "not analysed: BUSY: \ufffd\ufffd"),
        ("of \u202e turned", "not analysed: BUSY"),
        ("x" * 300, f"not analysed: BUSY: {'x' * 179}…"),
        ("", "not analysed: BUSY:"),
    ],
    ids=["words", "a secret on lines", "unfit", "unseen", "long", "nothing"],
)
def test_a_limitation_is_one_line_that_a_job_may_keep(message: str, said: str) -> None:
    """Whatever the error says."""
    assert limitation("not analysed", Busy(message)) == said
    assert Degraded(None, limitations=[said]).limitations == (said,)
