"""The shop's own tests: `python examples/django_shop/manage.py test shop`."""

from __future__ import annotations

from django.test import TransactionTestCase

from shop.jobs import app
from shop.models import Order


class OrderTest(TransactionTestCase):
    """On Django's test database, whose testigo schema was made with it. Each test commits: jobs are seen by others."""

    @classmethod
    def setUpClass(cls) -> None:
        """Django drops its database in the end, to which the App must not be connected then."""
        super().setUpClass()
        cls.addClassCleanup(app.close)

    def test_an_order_is_invoiced(self) -> None:
        """Its job runs here, without a worker."""
        self.client.post("/orders", {"items": 2}, content_type="application/json")
        self.assertEqual(app.run_until_idle(), 1)
        self.assertEqual(Order.objects.get().invoice, "2 items, 500 cents")

    def test_an_order_that_is_refused_leaves_no_job(self) -> None:
        """The transaction that would have made both was rolled back."""
        answer = self.client.post("/orders", {"items": 101}, content_type="application/json")
        self.assertEqual(answer.status_code, 409)
        self.assertEqual(app.run_until_idle(), 0)
