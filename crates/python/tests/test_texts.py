"""Tests texts that PostgreSQL cannot store: repaired in errors and reasons, refused elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline import transaction

Run = Callable[[Any], Any]


def test_broken_text_is_kept_in_errors_and_refused_elsewhere(url: str, run: Run) -> None:
    from opened import opened

    async def story() -> None:
        _, mails = await opened(url, str)
        await mails.enqueue_many(["a", "b"])
        first, second = await mails.lease(2)
        await mails.bury(first, "caf\udce9\0!")
        await mails.retry(second, 0, "caf\udce9")
        assert [letter.error for letter in await mails.dead_letters()] == ["caf?\ufffd!"]
        assert [one.error for one in await mails.peek(1)] == ["caf?"]
        for draft in (mails.draft("x").metadata({"a": "\udce9"}), mails.draft("x").metadata({"\0": "a"}), mails.draft("x").key("\udce9")):
            with pytest.raises(trunkline.BadPayload):
                await mails.enqueue(draft)

    run(story())


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_failure_without_text_does_not_hide_neighbours(url: str, run: Run) -> None:
    from opened import opened

    class Picky:
        column = "text"

        def encode(self, payload: str, /) -> bytes:
            return payload.encode()

        def decode(self, payload: bytes, /) -> str:
            if payload == b"bad":
                raise Mute
            return payload.decode()

    async def story() -> None:
        from trunkline.testing import assert_enqueued, assert_not_enqueued

        _, mails = await opened(url, Picky())
        await mails.enqueue_many(["good", "bad"])
        good, bad = await mails.peek(2)
        assert (good.payload, bad.payload) == ("good", None) and bad.problem and "Mute" in bad.problem
        with pytest.raises(AssertionError, match="cannot be read"):
            await assert_not_enqueued(mails, "other")
        with pytest.raises(AssertionError):
            await assert_enqueued(mails, None)  # type: ignore[arg-type]
        with psycopg.connect(url) as sql:
            (leased,) = transaction.queue(sql, mails).lease(2)
            assert leased.payload == "good"

    run(story())
