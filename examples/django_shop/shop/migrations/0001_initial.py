"""The first table."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """The orders."""

    initial = True
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("items", models.IntegerField()),
                ("invoice", models.CharField(blank=True, max_length=100)),
                ("job", models.CharField(max_length=36)),
            ],
        )
    ]
