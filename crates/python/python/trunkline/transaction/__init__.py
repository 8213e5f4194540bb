"""Enqueues and acknowledges in your own transaction, on a connection of your own driver.

    import psycopg
    from trunkline import transaction

    with psycopg.connect(url) as connection:
        connection.execute("insert into users (name) values ('ada')")
        transaction.queue(connection, "mails", Mail).enqueue(Mail(to="ada@example.org"))
    # committed: both the user's row and the mail

Supports psycopg 3 (sync and async), asyncpg, SQLAlchemy 2 (connections and sessions, sync and
async) and Django's ORM. None of them is a dependency of this package. Each verb is one statement
that calls an SQL function; payloads are written in the same way as in the rest of the package.
"""

from trunkline.transaction.async_queue import AsyncDraft, AsyncQueue
from trunkline.transaction.message import Message
from trunkline.transaction.of import queue
from trunkline.transaction.sync_queue import SyncDraft, SyncQueue

__all__ = ["AsyncDraft", "AsyncQueue", "Message", "SyncDraft", "SyncQueue", "queue"]
