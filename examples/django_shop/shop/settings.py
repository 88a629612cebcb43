"""The shop's settings."""

from __future__ import annotations

import os

SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "only for this example")
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True

# The names are the shop's own: DATABASE_URL and PG* do not reach the processes in which handlers run,
# and these handlers shall read orders.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("SHOP_DB_NAME", "shop"),
        "USER": os.environ.get("SHOP_DB_USER", ""),
        "PASSWORD": os.environ.get("SHOP_DB_PASSWORD", ""),
        "HOST": os.environ.get("SHOP_DB_HOST", ""),
        "PORT": os.environ.get("SHOP_DB_PORT", ""),
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = ["testigo.contrib.django", "shop"]
TESTIGO = {"APP": "shop.jobs:app"}
