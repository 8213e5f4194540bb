from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import trunkline


async def opened(url: str, type: Any = dict, **settings: Any) -> tuple[trunkline.Db, trunkline.Queue[Any]]:
    db = await trunkline.Db.connect(url)
    await db.migrate()
    await db.create_queue("mails", type, **settings)
    return db, await db.queue("mails", type)


def test_a_message_goes_in_is_leased_and_is_gone_when_it_is_acknowledged(url: str, run: Any) -> None:
    async def story() -> None:
        _, mails = await opened(url)
        id = await mails.enqueue({"to": "ada"})
        (mail,) = await mails.lease(10)
        assert (mail.id, mail.attempt, mail.payload, mail.metadata) == (id, 1, {"to": "ada"}, {})
        assert abs(datetime.now(timezone.utc) - mail.enqueued_at) < timedelta(minutes=1)
        assert (await mails.stats()).leased == 1
        await mails.ack(mail)
        assert (await mails.stats()).messages == 0
        with pytest.raises(trunkline.LeaseLost) as lost:
            await mails.ack(mail)
        assert lost.value.is_lease_lost and lost.value.lost_ids == [id]

    run(story())
