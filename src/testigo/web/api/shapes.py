"""What all shapes of the API share: how they are checked, and the values that occur in many of them.

A shape is a pydantic model: a request's is checked strictly and refuses what it does not know; an answer's
is made from the value of the same name that a command or reading returned.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

__all__ = ["CountShape", "Flag", "Id", "Moment", "Number", "PageShape", "Shape", "Whole"]

T = TypeVar("T")


class Shape(BaseModel):
    """A JSON object of the API. Unknown members are refused; what a member means stands below it."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, from_attributes=True, use_attribute_docstrings=True, ser_json_inf_nan="null"
    )


def _text(value: object) -> object:
    """Let nothing but text and datetimes become a time: a number of seconds names no zone."""
    if isinstance(value, str | datetime):
        return value
    raise ValueError("a time is text as ISO 8601 writes it, with its zone")


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is out of range") from None


Moment = Annotated[AwareDatetime, BeforeValidator(_text), AfterValidator(_utc)]
"""A point in time, in UTC."""

Whole = Annotated[int, Strict()]
"""A whole number: neither text nor true."""

Number = Annotated[float, Strict()]
"""A number: neither text nor true."""

Flag = Annotated[bool, Strict()]
"""True or false, and nothing that passes for one of them."""

Id = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        json_schema_extra={"format": "uuid"},
        examples=["0198f3c2-7a51-7c43-9d0e-5b1f6a2c3d4e"],
    ),
]
"""An id as testigo writes it."""


class CountShape(Shape):
    """How many there are, counted up to 10,000."""

    n: int
    more: bool
    """There are more than `n`."""


class PageShape(Shape, Generic[T]):
    """Some items of a listing, in its order."""

    items: tuple[T, ...]
    next: str | None
    """The address of the next page, relative to this one's host; null at the end."""
    complete: bool = True
    """False where the search stopped after 10,000 rows: it goes on at `next`, and this page may be empty."""
