"""Code whose types mypy and pyright must infer for a queue in the user's transaction. It is
checked, and never run."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import trunkline
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session
from trunkline import transaction
from typing_extensions import assert_type


@dataclass
class Mail:
    to: str


def blocking(one: psycopg.Connection, two: Connection, three: Session, mails: trunkline.Queue[Mail]) -> None:
    assert_type(transaction.queue(one, "mails", Mail), transaction.SyncQueue[Mail])
    assert_type(transaction.queue(two, "mails", Mail), transaction.SyncQueue[Mail])
    assert_type(transaction.queue(three, "mails", Mail), transaction.SyncQueue[Mail])
    assert_type(transaction.queue(one, mails), transaction.SyncQueue[Mail])
    queue = transaction.queue(one, mails)
    assert_type(queue.enqueue(Mail("ada")), trunkline.Enqueued)
    assert_type(queue.draft(Mail("ada")).after(minutes=5).enqueue(), trunkline.Enqueued)
    for message in queue.take(10):
        assert_type(message.payload, Mail)
        queue.ack(message)
    queue.enqueue("ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def awaiting(one: psycopg.AsyncConnection, two: AsyncConnection, three: AsyncSession, mails: trunkline.Queue[Mail]) -> None:
    assert_type(transaction.queue(one, "mails", Mail), transaction.AsyncQueue[Mail])
    assert_type(transaction.queue(two, "mails", Mail), transaction.AsyncQueue[Mail])
    assert_type(transaction.queue(three, "mails", Mail), transaction.AsyncQueue[Mail])
    leased = await mails.lease(10)
    await transaction.queue(one, mails).ack(leased)
    assert_type(await transaction.queue(one, mails).enqueue_many([Mail("ada")]), list[trunkline.Enqueued])
