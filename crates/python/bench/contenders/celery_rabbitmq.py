"""Celery with RabbitMQ: durable queues, persistent messages, and each enqueue waits for the
broker's confirmation."""

from __future__ import annotations

from bench.contenders import celery_redis


class Contender(celery_redis.Contender):
    needs = "rabbitmq"
    settings = "confirm_publish; prefork of two, prefetch 128, acks late, results ignored, no events; durable queue, persistent messages"
    backlog = 8_000
