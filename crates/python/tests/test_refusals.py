"""A refusal is about a payload only if the call stores one, and names what Python knows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trunkline
from trunkline.errors import in_python
from trunkline.sync import Db

LONG = timedelta(days=366)


def test_settings_are_no_payloads(url: str, run: Any) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int, uniqueness=True)
    queue = db.queue("numbers", int)
    queue.enqueue(1)
    refused = [
        lambda: db.create_queue("more", int, max_batch=5000),
        lambda: db.create_queue("more", int, priorities=11),
        lambda: db.create_queue("more", int, lease=LONG),
        lambda: db.alter_queue("numbers", lease=LONG),
        lambda: db.limit_queue("numbers", per_second=-1),
        lambda: queue.lease(1, LONG),
    ]
    for call in refused:
        with pytest.raises(trunkline.TrunklineError) as error:
            call()
        assert not error.value.is_bad_payload and not isinstance(error.value, trunkline.BadPayload)
        assert error.value.sqlstate is not None

    async def story() -> None:
        theirs = await trunkline.Db.connect(url)
        with pytest.raises(trunkline.TrunklineError) as error:
            await theirs.alter_queue("numbers", lease=LONG)
        assert not error.value.is_bad_payload

    run(story())


def test_payloads_that_the_server_refuses_are_still_bad(url: str, run: Any) -> None:
    db = Db.connect(url)
    db.migrate()

    class Raw:
        column = "jsonb"

        def encode(self, payload: bytes, /) -> bytes:
            return payload

        def decode(self, payload: bytes, /) -> bytes:
            return payload

    db.create_queue("raw", Raw())
    queue = db.queue("raw", Raw())
    for call in (queue.enqueue, lambda payload: queue.enqueue_many([payload]), lambda payload: queue.schedule(trunkline.Schedule("s", "@daily"), payload)):
        with pytest.raises(trunkline.BadPayload):
            call(b"{no json")

    async def story() -> None:
        theirs = await (await trunkline.Db.connect(url)).queue("raw", Raw())
        with pytest.raises(trunkline.BadPayload):
            await theirs.enqueue(b"{no json")

    run(story())


def test_errors_name_no_types_of_rust(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("numbers", int)
    queue = db.queue("numbers", int)
    with pytest.raises(trunkline.BadPayload, match="^the metadata cannot be written as jsonb: 20008 bytes are too many"):
        queue.enqueue(queue.draft(1).metadata({"a": "x" * 20_000}))
    assert in_python("_trunkline::raw::Raw cannot be written as text: no") == "the payload cannot be written as text: no"
    with pytest.raises(ValueError, match="^priority 1099511627776 is out of bounds"):
        trunkline.Schedule("s", "@daily", priority=2**40)
    wrong: Any = 5
    with pytest.raises(TypeError, match="^the zone of a schedule must be a str, not 5"):
        trunkline.Schedule("s", "@daily", wrong)
    wrong = "yes"
    for setting, text in [("uniqueness", "True or False"), ("lease", "seconds or a timedelta"), ("aging", "seconds or a timedelta")]:
        with pytest.raises(TypeError, match=f"^{setting} must be {text}, not 'yes'"):
            db.create_queue("more", int, **{setting: wrong})
