"""What Django loads."""

from __future__ import annotations

from django.apps import AppConfig


class TrunklineConfig(AppConfig):
    name = "trunkline.django"
    label = "trunkline"
    verbose_name = "Trunkline"
    default_auto_field = "django.db.models.BigAutoField"
