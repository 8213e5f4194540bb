"""The message that every contender sends: a JSON object of 100 bytes, with a number by which
handlers count it."""

from __future__ import annotations

from typing import TypedDict

BYTES = 100


class Message(TypedDict):
    n: int
    text: str


def message(n: int) -> Message:
    return {"n": n, "text": "x" * (BYTES - len('{"n":,"text":""}') - len(str(n)))}
