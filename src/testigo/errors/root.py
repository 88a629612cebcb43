"""The root of the tree: what every error carries, and how its class states it."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["Error"]


class Error(Exception):
    """The root of every error that testigo raises.

    `code` never changes between releases; `remedy` is a sentence that says what to do; `field`
    and `limit` name the part of the input that was refused and the bound that it broke; `facts`
    are further named values, safe to show (never a payload, never a secret).
    """

    code: ClassVar[str] = "ERROR"
    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 10
    remedy: str = "Report it: an error without a code of its own should not reach you."

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        remedy: str | None = None,
        http_status: int | None = None,
        exit_status: int | None = None,
    ) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code
        if remedy is not None:
            cls.remedy = remedy
        if http_status is not None:
            cls.http_status = http_status
        if exit_status is not None:
            cls.exit_status = exit_status

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        limit: str | None = None,
        remedy: str | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.limit = limit
        self.facts = facts
        if remedy is not None:
            self.remedy = remedy

    def __str__(self) -> str:
        where = f" [field: {self.field}]" if self.field else ""
        bound = f" [limit: {self.limit}]" if self.limit else ""
        return f"{self.code}: {self.message}{where}{bound} {self.remedy}"
