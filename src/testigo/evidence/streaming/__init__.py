"""JSON of any size, read event by event: what is not asked for is checked and never built.

A report is read from one open file (`Source`), by walking through it (`Walk`).
"""

from testigo.evidence.streaming.source import Source
from testigo.evidence.streaming.walk import Walk

__all__ = ["Source", "Walk"]
