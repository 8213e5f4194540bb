"""Enqueues after the commit of Django's transaction, through the library."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from trunkline.draft import Drafted
from trunkline.queue import encoded
from trunkline.worker import Task

T = TypeVar("T")


def enqueue_on_commit(task: Task[T], message: T | Drafted[T], alias: str | None = None) -> None:
    """Enqueues a payload or a draft after the current transaction has committed, and never if it
    rolls back. Without a transaction, enqueues immediately.

    The transaction is that of Django's database `alias`; its default is the database of the task's
    application. The message is written at the call, so later changes of the payload have no effect.

    It costs the transaction nothing, and concurrent threads share rows and commits. But if the
    process dies between the two commits, the message is lost, and an error of the enqueue is raised
    after the commit. If the message must not be missed, enqueue in the transaction, with
    `trunkline.transaction.queue(connection, task)`. A payload that cannot be written immediately
    raises `BadPayload`.
    """
    transaction: Any = import_module("django.db.transaction")
    written = encoded(task.codec, message)
    using = getattr(task.app, "alias", "default") if alias is None else alias
    transaction.on_commit(lambda: task.app.queue_sync(task).native.enqueue(None, written), using=using)
