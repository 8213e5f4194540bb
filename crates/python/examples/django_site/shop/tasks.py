"""The shop's background tasks."""

from dataclasses import dataclass

import trunkline
from django.db import connection, transaction
from trunkline.django import App
from trunkline.transaction import queue

app = App()


@dataclass
class Confirmation:
    order: int


@app.task(queue="confirmations", retry=trunkline.Backoff(max_attempts=3), timeout=30)
def confirm(confirmation: Confirmation) -> None:
    from shop.models import Order

    if not Order.objects.filter(pk=confirmation.order).update(is_confirmed=True):
        raise trunkline.Bury("no such order")


@app.task(queue="invoices")
def invoice(confirmation: Confirmation, context: trunkline.Context) -> None:
    """Takes effect exactly once: the effect and the acknowledgement commit together."""
    from shop.models import Order

    context.ends_elsewhere_in_thread()
    with transaction.atomic():
        Order.objects.create(mail=f"invoice-{confirmation.order}@example.org")
        queue(connection, invoice).ack(context.lease)


@app.task(queue="reminders", retry=trunkline.Fixed(0))
async def remind(confirmation: Confirmation) -> None:
    """Uses the asynchronous ORM."""
    from shop.models import Order

    if await Order.objects.filter(pk=confirmation.order).aexists():
        await Order.objects.acreate(mail="reminder")
