"""Handlers that end in every way that there is."""

from __future__ import annotations

from dataclasses import dataclass

from testigo import App, AsyncContext, Blocked, Context, Degraded, Permanent

__all__ = ["Handlers", "Receipt"]


@dataclass
class Receipt:
    """What an order ends in."""

    number: int
    lines: list[str]


class Handlers:
    """The handlers, registered with one App."""

    def __init__(self, app: App) -> None:
        @app.job("order", queue="orders")
        async def order(ctx: AsyncContext, number: int, lines: list[str] | None = None) -> Receipt:
            """Take an order."""
            return Receipt(number, lines or [])

        @app.job("partly")
        def partly(ctx: Context) -> int | Degraded[int]:
            return Degraded(7, ["the last line is missing"])

        @app.job("never")
        def never(ctx: Context) -> int:
            raise Permanent("no-stock", "there is nothing left")

        @app.job("stuck")
        def stuck(ctx: Context) -> None:
            raise Blocked("the budget is spent")

        self.order = order
        self.partly = partly
        self.never = never
        self.stuck = stuck
