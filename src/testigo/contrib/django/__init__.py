"""testigo in a Django project: jobs in Django's own database, submitted within its transactions.

    # settings.py
    INSTALLED_APPS = [..., "testigo.contrib.django"]
    TESTIGO = {"APP": "shop.jobs:app"}

    # shop/jobs.py
    from testigo.contrib.django import App

    app = App("shop")

    @app.job("shop.invoice")
    def invoice(ctx: Context, order: int) -> str: ...

    # shop/views.py
    with transaction.atomic():
        order = Order.objects.create(...)
        invoice.submit(order=order.pk)  # the job exists if and only if the order does

`manage.py migrate` brings testigo's schema up to date as well, and `manage.py testigo …` is the command
line on this database: `manage.py testigo worker`, `manage.py testigo jobs list`. It needs Django:
`pip install 'testigo[django]'`.
"""

from __future__ import annotations

try:
    import django as _django  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "testigo.contrib.django needs Django: pip install 'testigo[django]'", name=error.name
    ) from error

from testigo.contrib.django.application import App

__all__ = ["App"]
