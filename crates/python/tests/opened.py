"""Queues for tests."""

from __future__ import annotations

from typing import Any

import trunkline


async def opened(url: str, type: Any = dict, **settings: Any) -> tuple[trunkline.Db, trunkline.Queue[Any]]:
    """Creates a queue ``mails`` in a new schema, and opens it."""
    db = await trunkline.Db.connect(url)
    await db.migrate()
    await db.create_queue("mails", type, **settings)
    return db, await db.queue("mails", type)
