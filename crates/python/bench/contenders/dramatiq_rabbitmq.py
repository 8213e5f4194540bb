"""dramatiq with RabbitMQ: durable queues, persistent messages, and each enqueue waits for the
broker's confirmation."""

from __future__ import annotations

from bench.contenders import dramatiq_redis


class Contender(dramatiq_redis.Contender):
    needs = "rabbitmq"
    settings = "confirm_delivery; two processes of 8 threads, prefetch 1000, plain functions; durable queue, persistent messages"
    backlog = 10_000

    async def waiting(self) -> int:
        from bench.contenders.dramatiq_actor import QUEUE

        ready: int = self._broker.get_queue_message_counts(QUEUE)[0]  # type: ignore[attr-defined]
        return ready
