"""dramatiq's actor, which its program imports. It uses the broker that the environment names."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.broker import Broker

from bench.place import here
from bench.tally import VARIABLE, Tally

PROCESSES, THREADS = 2, 8
QUEUE = "bench"


def broker() -> Broker:
    place = here()
    made: Broker
    if place.redis:
        from dramatiq.brokers.redis import RedisBroker

        made = RedisBroker(url=place.redis)
    else:
        from dramatiq.brokers.rabbitmq import RabbitmqBroker

        made = RabbitmqBroker(url=place.rabbitmq, confirm_delivery=True)
    return made


dramatiq.set_broker(broker())
tally = Tally.of_the_worker() if VARIABLE in os.environ else None


@dramatiq.actor(queue_name=QUEUE, max_retries=0)
def handle(n: int, text: str) -> None:
    if tally is not None:
        tally.add(n)
