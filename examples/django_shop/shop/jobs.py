"""The shop's jobs."""

from __future__ import annotations

from shop.models import Order
from testigo import Context
from testigo.contrib.django import App

app = App("shop")


@app.job("shop.invoice")
def invoice(ctx: Context, order: int) -> str:
    """Write the invoice of an order. Run again, it writes the same."""
    found = Order.objects.get(pk=order)
    found.invoice = f"{found.items} items, {found.items * 250} cents"
    found.save(update_fields=["invoice"])
    return found.invoice
