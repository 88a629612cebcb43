"""What the shop keeps."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """An order, and what its invoice says once it is written."""

    items: models.IntegerField[int, int] = models.IntegerField()
    invoice: models.CharField[str, str] = models.CharField(max_length=100, blank=True)
    job: models.CharField[str, str] = models.CharField(max_length=36)
