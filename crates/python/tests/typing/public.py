"""Code whose types mypy and pyright must infer. It is checked, and never run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, Union

from typing_extensions import assert_type

import trunkline
import trunkline.sync


@dataclass
class Mail:
    to: str


app = trunkline.App()


@app.task(queue="mails", retry=trunkline.Backoff(max_attempts=5), timeout=30, max_attempts=7)
async def send(mail: Mail) -> None: ...


@app.task()
async def knows(mail: Mail, context: trunkline.Context) -> None: ...


@app.task(batch=100)
def many(mails: list[Mail]) -> list[Exception | None]:
    return [None for _ in mails]


@app.task()
async def of_message(message: trunkline.Message[Mail]) -> None: ...


@app.task()
def of_message_in_context(message: trunkline.Message[int], context: trunkline.Context) -> None: ...


@app.task()
async def by_name(mail: Mail, *, context: trunkline.Context) -> None: ...


@app.task()
def of_message_by_name(message: trunkline.Message[int], *, context: trunkline.Context) -> None: ...


@app.task()
async def only_by_name(*, context: trunkline.Context) -> None: ...


@app.task(batch=100)
async def of_messages(messages: list[trunkline.Message[int]]) -> None: ...


@app.task(batch=100)
def of_sequence(numbers: Sequence[int]) -> None: ...


@app.schedule("@daily")
@app.task()
async def nightly() -> None: ...


async def story() -> None:
    assert_type(send, trunkline.Task[Mail])
    assert_type(knows, trunkline.Task[Mail])
    assert_type(many, trunkline.Task[Mail])
    assert_type(nightly, trunkline.Task[None])
    assert_type(of_message, trunkline.Task[Mail])
    assert_type(of_message_in_context, trunkline.Task[int])
    assert_type(by_name, trunkline.Task[Mail])
    assert_type(of_message_by_name, trunkline.Task[int])
    assert_type(only_by_name, trunkline.Task[None])
    assert_type(of_messages, trunkline.Task[int])
    assert_type(of_sequence, trunkline.Task[int])
    assert_type(await of_message.enqueue(Mail("ada")), trunkline.Enqueued)
    assert_type(await of_messages.enqueue_many([5]), list[trunkline.Enqueued])
    assert_type(await app.queue(of_messages), trunkline.Queue[int])
    await of_message.enqueue("ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(await send.enqueue(Mail("ada")), trunkline.Enqueued)
    assert_type(await send.draft(Mail("ada")).after(minutes=5).key("k"), trunkline.Enqueued)
    db = await trunkline.Db.connect()
    mails = await db.queue("mails", Mail)
    assert_type(mails, trunkline.Queue[Mail])
    (message,) = await mails.lease(1)
    assert_type(message, trunkline.Message[Mail])
    assert_type(message.payload, Mail)
    async for one in mails.consumer():
        assert_type(one.payload, Mail)
    for letter in await mails.dead_letters():
        assert_type(letter.payload, Mail | None)
    assert_type(mails.consumer(wait=timedelta(seconds=1)), trunkline.Consumer[Mail])
    # Forms that are no classes are accepted, and a variable's annotation says what they mean.
    optional: trunkline.Queue[Mail | None] = await db.queue("optional", Mail | None)
    assert_type(await optional.enqueue(None), trunkline.Enqueued)
    assert_type(await db.queue("literal", Literal["a", "b"]), trunkline.Queue[Any])
    assert_type(await db.queue("annotated", Annotated[int, "of something"]), trunkline.Queue[Any])
    assert_type(await db.queue("union", Union[int, str]), trunkline.Queue[Any])
    names = await db.queue("names", str)
    assert_type(await names.enqueue_many(["ada"]), list[trunkline.Enqueued])


def waiting() -> None:
    either: trunkline.sync.Queue[int | str] = trunkline.sync.Db.connect().queue("either", int | str)
    assert_type(either.enqueue(5), trunkline.Enqueued)
    mails = trunkline.sync.Db.connect().queue("mails", Mail)
    assert_type(mails, trunkline.sync.Queue[Mail])
    assert_type(mails.enqueue(mails.draft(Mail("ada")).unique("k", ttl=60)), trunkline.Enqueued)
    for message in mails.consumer():
        assert_type(message.payload, Mail)
