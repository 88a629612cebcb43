"""What the shop answers."""

from __future__ import annotations

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from shop.jobs import invoice
from shop.models import Order

STOCK = 100


class SoldOut(Exception):
    """We have not so many."""


@csrf_exempt  # an example without users: nobody's session can be abused
@require_POST
def orders(request: HttpRequest) -> JsonResponse:
    """Take an order. One that cannot be delivered leaves nothing behind, no job either."""
    try:
        return JsonResponse(_take(json.loads(request.body)["items"]), status=201)
    except SoldOut as error:
        return JsonResponse({"detail": str(error)}, status=409)


@transaction.atomic
def _take(items: int) -> dict[str, object]:
    order = Order.objects.create(items=items)
    order.job = invoice.submit(order=order.pk).id  # in this transaction
    order.save(update_fields=["job"])
    if items > STOCK:
        raise SoldOut("We have not so many.")
    return {"order": order.pk, "job": order.job}


@require_GET
def order(_request: HttpRequest, pk: int) -> JsonResponse:
    """An order, and how the job stands that writes its invoice."""
    found = get_object_or_404(Order, pk=pk)
    return JsonResponse({"invoice": found.invoice, "job": found.job, "state": invoice.job(found.job).state()})
