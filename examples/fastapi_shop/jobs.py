"""The jobs of a small shop: what a worker's runners load, and nothing of the web."""

from __future__ import annotations

from dataclasses import dataclass

from testigo import App, Context

app = App("shop")


@dataclass
class Invoice:
    """What a customer has to pay."""

    order: int
    text: str


@app.job("shop.invoice")
def invoice(ctx: Context, order: int, items: int) -> Invoice:
    """Write the invoice of an order."""
    ctx.log(f"{items} items")
    return Invoice(order, text=f"{items} items, {items * 250} cents")
