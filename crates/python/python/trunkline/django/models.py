"""A model without a table, so that the admin can show dead letters and grant permissions on
them."""

from __future__ import annotations

from django.db import models


class DeadLetter(models.Model):
    """A message whose attempts are used up. Trunkline stores it, not Django, so `objects` cannot be
    queried."""

    class Meta:
        managed = False
        default_permissions = ("view", "change", "delete")
        verbose_name = "dead letter"
        verbose_name_plural = "dead letters"
