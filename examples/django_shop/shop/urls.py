"""Where the shop answers."""

from __future__ import annotations

from django.urls import path

from shop import views

urlpatterns = [path("orders", views.orders), path("orders/<int:pk>", views.order)]
