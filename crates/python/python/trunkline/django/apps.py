"""The app configuration, which Django loads."""

from __future__ import annotations

from django.apps import AppConfig

from trunkline.django.app import applications
from trunkline.django.test_databases import let_go_at_the_end


class TrunklineConfig(AppConfig):
    """Django's configuration of the application `trunkline.django`."""

    name = "trunkline.django"
    label = "trunkline"
    verbose_name = "Trunkline"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Makes Trunkline's connections close before Django drops a test database."""
        let_go_at_the_end(applications)
