"""The command line as a shell calls it: a process of its own, on a terminal of a given width or on pipes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from dataclasses import dataclass, field

__all__ = ["Terminal", "piped"]

COMMAND = (sys.executable, "-m", "testigo")
PATIENCE_SECONDS = 90.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def piped(*arguments: str, url: str, **environment: str) -> subprocess.Popen[str]:
    """A command whose stdin, stdout and stderr are pipes."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TESTIGO_URL": url, **environment},
    )


@dataclass
class Terminal:
    """A command on a terminal: what it has shown so far, and its exit status once it has ended."""

    process: subprocess.Popen[bytes]
    screen: int
    patience_seconds: float = PATIENCE_SECONDS
    """For how long it may show nothing new."""
    raw: str = field(default="", init=False)
    shown: str = field(default="", init=False)

    @classmethod
    def of(cls, *arguments: str, url: str, columns: int = 80, **environment: str) -> Terminal:
        """Start a command on a terminal of so many columns."""
        screen, line = pty.openpty()
        fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=line,
            stdout=line,
            stderr=line,
            env={**inherited, "TESTIGO_URL": url, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        os.close(line)
        return cls(process, screen)

    def until(self, wanted: str) -> None:
        """Read until this is on the screen."""
        while wanted not in self.shown:
            assert self._read(), self.shown

    def say(self, text: str) -> None:
        """Type something."""
        os.write(self.screen, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal sends it, once the command waits: Python overlooks one in the moment before."""
        ends_at = time.monotonic() + self.patience_seconds
        asked = ["ps", "-o", "stat=", "-p", str(self.process.pid)]
        while not subprocess.run(asked, capture_output=True, text=True, check=True).stdout.startswith("S"):
            assert time.monotonic() < ends_at, "it does not wait"
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read to the end; the exit status."""
        try:
            while self._read():
                pass
        finally:
            os.close(self.screen)
            self.process.kill()
            status = self.process.wait()
        return status

    def _read(self) -> bool:
        read = b""
        assert select.select([self.screen], [], [], self.patience_seconds)[0], f"nothing follows\n{self.shown}"
        with suppress(OSError):  # what Linux says of a terminal that nobody has open any more
            read = os.read(self.screen, 65_536)
        self.raw += read.decode(errors="replace")
        self.shown = _ESCAPES.sub("", self.raw).replace("\r\n", "\n")
        return bool(read)
