"""No table: what makes the dead letters a thing that the admin shows and gives rights to."""

from __future__ import annotations

from django.db import models


class DeadLetter(models.Model):
    """A message whose attempts are used up. Kept by Trunkline, not by Django: nothing can be asked of `objects`."""

    class Meta:
        managed = False
        default_permissions = ("view", "change", "delete")
        verbose_name = "dead letter"
        verbose_name_plural = "dead letters"
