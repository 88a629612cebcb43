"""How what the server answers is read: in its binary form, which no setting of a session, role or database changes.

As text a time looks as DateStyle and TimeZone say, an interval as IntervalStyle does, and of a float there are as many
digits as extra_float_digits leaves. Whoever else uses the server connection behind a transaction pooler may have set
any of them, and so may the role.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.adapt import Loader

__all__ = ["AsyncBinaryCursor", "AsyncRawBinaryCursor", "BinaryCursor", "RawBinaryCursor", "read_binary"]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_ANY_OTHER = 0
_OWN_OID_MIN = 16_384
"""Types that come with the server have smaller ones than those that are made in a database."""


class _Binary:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.format = pq.Format.BINARY


class BinaryCursor(_Binary, psycopg.Cursor[Any]):
    """A cursor whose results come in binary."""


class AsyncBinaryCursor(_Binary, psycopg.AsyncCursor[Any]):
    """The same of an asynchronous connection."""


class RawBinaryCursor(_Binary, psycopg.RawCursor[Any]):
    """The same for a statement with $1."""


class AsyncRawBinaryCursor(_Binary, psycopg.AsyncRawCursor[Any]):
    """Both."""


class _TimeLoader(Loader):
    """Times are read as UTC, whatever the session's zone is."""

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> datetime:
        return _EPOCH + timedelta(microseconds=int.from_bytes(data, "big", signed=True))


class _LabelLoader(Loader):
    """What psycopg does not know are our enumerations: their labels travel as text.

    A value of one of the server's own types, such as a transaction's id, is the bytes that came, and no guess.
    """

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> str | bytes:
        return bytes(data) if self.oid < _OWN_OID_MIN else str(data, "utf-8")


def read_binary(driver: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Have this connection of ours read what it is answered, by one of these cursors."""
    driver.adapters.register_loader("timestamptz", _TimeLoader)
    driver.adapters.register_loader(_ANY_OTHER, _LabelLoader)
