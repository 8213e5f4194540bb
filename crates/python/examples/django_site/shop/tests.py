"""Tests of the shop, for Django's test runner. Trunkline uses the test database."""

import asyncio

from django.core.management import call_command
from django.test import TransactionTestCase
from shop.models import Order
from shop.tasks import Confirmation, app, confirm, remind
from trunkline.django import enqueue_on_commit


class Confirmations(TransactionTestCase):
    def setUp(self) -> None:
        call_command("trunkline_setup", verbosity=0)  # schema and queues, in the test database
        app.queue_sync(confirm).purge()  # Django does not empty the queues between tests

    def test_an_order_is_confirmed(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        enqueue_on_commit(confirm, Confirmation(order.pk))
        self.assertEqual(asyncio.run(app.drain(queues=["confirmations"])).done, 1)
        order.refresh_from_db()
        self.assertTrue(order.is_confirmed)

    def test_an_order_is_reminded_of(self) -> None:
        order = Order.objects.create(mail="ada@example.org")
        enqueue_on_commit(remind, Confirmation(order.pk))
        self.assertEqual(asyncio.run(app.drain(queues=["reminders"])).done, 1)
        self.assertEqual(Order.objects.filter(mail="reminder").count(), 1)
