"""Tasks of Django's application, whose types mypy and pyright must infer as those of `trunkline.App`.
It is checked, and never run."""

from __future__ import annotations

from typing_extensions import assert_type

import trunkline
from trunkline.django import App, enqueue_on_commit

app = App()


@app.task(queue="numbers", timeout=30)
def count(number: int) -> None: ...


@app.task(batch=10)
async def many(numbers: list[str]) -> None: ...


def story() -> None:
    assert_type(count, trunkline.Task[int])
    assert_type(many, trunkline.Task[str])
    assert_type(app.queue_sync(count).enqueue(5), trunkline.Enqueued)
    enqueue_on_commit(count, 5)
    app.queue_sync(count).enqueue("5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.task(timeot=30.5j)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
