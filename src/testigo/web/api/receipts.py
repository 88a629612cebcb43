"""Receipts: what a command answered, found again by whoever lost the answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from testigo.access.roles import Right
from testigo.authority.read import receipt
from testigo.errors import NotFound
from testigo.web.api import examples
from testigo.web.api.shapes import Moment, Shape
from testigo.web.api.told import told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/receipts", tags=["receipts"])


class ReceiptShape(Shape):
    """What a command answered, the digest of what it asked, and when it was made."""

    actor: str
    action: str
    digest: str
    answer: Any
    created_at: Moment


class ReceiptQuery(Shape):
    """Whose receipt."""

    actor: str | None = None
    """Who sent the command, as events name them; without it, who asks."""


@routes.get(
    "/{action:path}",
    Right.READ,
    **told("get_receipt", "Find a command's receipt", shows=examples.RECEIPT, refuses=(NotFound,)),
)
async def get_receipt(
    action: Annotated[str, Path(description="The action's id: the Idempotency-Key.", examples=["order-17"])],
    asked: Annotated[ReceiptQuery, Query()],
    door: AtDoor,
    who: Caller,
) -> ReceiptShape:
    """Find what a command answered. That there is no receipt does not mean that it was not executed."""
    return ReceiptShape.model_validate(await door.read(receipt, asked.actor or who.actor, action))
