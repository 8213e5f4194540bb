"""The shop's tables."""

from django.db import models


class Order(models.Model):
    mail = models.EmailField()
    is_confirmed = models.BooleanField(default=False)

    class Meta:
        app_label = "shop"
