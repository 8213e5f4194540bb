"""Celery's application, which its program imports. It uses the broker that the environment
names."""

from __future__ import annotations

import os

from celery import Celery

from bench.place import here
from bench.tally import VARIABLE, Tally

QUEUE = "bench"
PROCESSES = 2

place = here()
app = Celery("bench", broker=place.redis or place.rabbitmq)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    task_default_queue=QUEUE,
    worker_prefetch_multiplier=128,
    worker_send_task_events=False,
    broker_transport_options={} if place.redis else {"confirm_publish": True},
    broker_connection_retry_on_startup=True,
)
tally = Tally.of_the_worker() if VARIABLE in os.environ else None


@app.task(name="message")  # type: ignore[untyped-decorator]
def handle(n: int, text: str) -> None:
    if tally is not None:
        tally.add(n)
