"""Enqueues after the commit of Django's transaction, through the library."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from trunkline.codec import Codec
from trunkline.draft import Drafted
from trunkline.worker import Task

T = TypeVar("T")


def enqueue_on_commit(task: Task[T], message: T | Drafted[T], alias: str = "default") -> None:
    """Enqueues a payload or a draft after the current transaction has committed, and never if it
    rolls back. Without a transaction, enqueues immediately.

    It costs the transaction nothing, and concurrent threads share rows and commits. But if the
    process dies between the two commits, the message is lost, and an error of the enqueue is raised
    after the commit. If the message must not be missed, enqueue in the transaction, with
    `trunkline.transaction.queue(connection, task)`. A payload that cannot be written immediately
    raises `BadPayload`.
    """
    transaction: Any = import_module("django.db.transaction")
    of: Any = message
    codec: Codec[Any] = task.codec
    codec.encode(of.payload if isinstance(message, Drafted) else of)
    transaction.on_commit(lambda: task.app.queue_sync(task).enqueue(of), using=alias)
