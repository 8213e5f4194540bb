"""Enqueue behind the commit of Django's transaction, through the library."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, TypeVar

from trunkline import sync
from trunkline.draft import Drafted
from trunkline.worker import Task

T = TypeVar("T")

#: By the process and the task's queue: what a server forks off has none yet.
_queues: dict[tuple[int, str], sync.Queue[Any]] = {}


def enqueue_on_commit(task: Task[T], message: T | Drafted[T], alias: str = "default") -> None:
    """Enqueues a payload or a draft once the current transaction has committed, at once where there is none, and never if it rolls back.

    It costs the transaction nothing, and concurrent threads share rows and commits. But a process that dies between the two commits has
    lost the message, and an error of the enqueue is raised behind the commit: where the message must not be missed, enqueue in the
    transaction, with `trunkline.transaction.queue(connection, task)`.
    """
    transaction: Any = import_module("django.db.transaction")
    transaction.on_commit(lambda: _queue(task).enqueue(message), using=alias)


def _queue(task: Task[T]) -> sync.Queue[T]:
    known = _queues.get((os.getpid(), task.queue))
    if known is None:
        db = sync.Db.connect(task.app.url)
        known = _queues.setdefault((os.getpid(), task.queue), db.queue(task.queue, task.codec))
    return known
