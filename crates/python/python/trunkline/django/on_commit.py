"""Enqueue behind the commit of Django's transaction, through the library."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from trunkline.codec import Codec
from trunkline.draft import Drafted
from trunkline.worker import Task

T = TypeVar("T")


def enqueue_on_commit(task: Task[T], message: T | Drafted[T], alias: str = "default") -> None:
    """Enqueues a payload or a draft once the current transaction has committed, at once where there is none, and never if it rolls back.

    It costs the transaction nothing, and concurrent threads share rows and commits. But a process that dies between the two commits has
    lost the message, and an error of the enqueue is raised behind the commit: where the message must not be missed, enqueue in the
    transaction, with `trunkline.transaction.queue(connection, task)`. A payload that cannot be written raises `BadPayload` at once.
    """
    transaction: Any = import_module("django.db.transaction")
    of: Any = message
    codec: Codec[Any] = task.codec
    codec.encode(of.payload if isinstance(message, Drafted) else of)
    transaction.on_commit(lambda: task.app.queue_sync(task).enqueue(of), using=alias)
