"""The protocol of the checker (README.md in this folder) for the peers in Python.

A peer's history.py defines how to install, send and consume. This module writes the history, makes
the messages, and does the work of a handler.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

WORK = "work"
SLOTS = 4  # concurrent handlers

# A handler takes the id, attempt and text of a message, the start of the attempt, and true if the
# peer numbers its attempts.
Handle = Callable[..., Awaitable[None]]
Send = Callable[[list[str]], Awaitable[list[int]]]


class Told:
    """The settings in the environment."""

    def __init__(self) -> None:
        self.url = os.environ["RIVAL_URL"]
        self.part = os.environ["RIVAL_PART"]
        self.nr = int(os.environ["RIVAL_NR"])
        self.lease = int(os.environ["RIVAL_LEASE_MS"])
        self.attempts = int(os.environ["RIVAL_ATTEMPTS"])


class Peer(Protocol):
    async def install(self) -> dict[str, str]:
        """Prepares the database. Returns the version and the settings."""

    async def produce(self, run: Callable[[Send], Awaitable[None]]) -> None:
        """Calls `run` with a function that sends texts and returns their ids once they are stored."""

    async def consume(self, handle: Handle, stopped: asyncio.Event) -> None:
        """Handles messages until `stopped` is set."""


class History:
    """Writes a line before each operation and a line after it, each in a single write."""

    def __init__(self) -> None:
        path = os.environ["RIVAL_HISTORY"]
        self.file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o644)
        self.process = Path(path).stem
        self.next = 0

    def invoked(self, call: dict[str, object]) -> int:
        self.next += 1
        self.say(self.next, invoked=call)
        return self.next

    def say(self, op: int, **said: object) -> None:
        line = json.dumps({"at": time.time_ns() // 1000, "op": op, **said}) + "\n"
        os.write(self.file, line.encode())


async def persist(make: Callable[[], Awaitable[object]]) -> object:
    """Repeats `make` until it can connect, as a supervisor would."""
    while True:
        try:
            return await make()
        except Exception as error:  # noqa: BLE001
            print(f"not yet: {type(error).__name__}: {error}", file=sys.stderr)
            await asyncio.sleep(0.5)


def payload(tag: int) -> str:
    """Returns a payload with the number `tag` and padding derived from it."""
    return f"{tag}:{'x' * (5_000 if tag % 61 == 0 else tag % 90)}"


def tag_of(text: str) -> int:
    number = text.partition(":")[0]
    return int(number) if number.isdecimal() and payload(int(number)) == text else 0


def work_of(tag: int, attempt: int, lease: float) -> tuple[float, bool]:
    """Returns a handler's duration in seconds, and true if it fails: the same for every peer."""
    kind = tag % 100
    fails = kind < 3 or (attempt == 1 and (kind < 9 or 12 <= kind < 15))
    if 9 <= kind < 15 and attempt <= 2:
        return lease * (1.5 if attempt == 1 else 0.7), fails
    if 15 <= kind < 25:
        return lease * 0.6, fails
    return (5 + tag % 25) / 1000, fails


async def produce(send: Send, told: Told, stopped: asyncio.Event) -> None:
    history = History()
    following = told.nr * 1_000_000
    while not stopped.is_set():
        following += 1
        tags = list(range(following, following + (5 if following % 5 == 0 else 1)))
        following = tags[-1]
        op = history.invoked({"verb": "enqueue", "queue": WORK, "tags": tags})
        try:
            history.say(op, ok={"ids": await send([payload(tag) for tag in tags])})
        except Exception as error:  # noqa: BLE001 (after any error, the message may be stored)
            history.say(op, unknown=f"{type(error).__name__}: {error}")
        await asyncio.sleep(told.lease / 1000 * len(tags) / 40)


def handler(told: Told) -> Handle:
    """Returns the handler of every message. The peer's tables show the effect of its outcome."""
    history = History()

    async def handle(id: int, attempt: int, text: str, since: int | None, is_numbered: bool = True) -> None:
        tag = tag_of(text)
        named = [[id, attempt if is_numbered else 0]]
        call = {"verb": "handle", "queue": WORK, "named": named, "tags": [tag], "ms": told.lease, "since": since or 0}
        op = history.invoked(call)
        lasts, fails = work_of(tag, attempt, told.lease / 1000)
        try:
            await asyncio.sleep(lasts)
            if fails:
                raise RuntimeError("it failed")
        except BaseException as error:
            history.say(op, failed=f"{type(error).__name__}: {error}")
            raise
        history.say(op, ok={})

    return handle


async def play(peer: Peer, told: Told) -> None:
    if told.part == "install":
        print(json.dumps(await peer.install()))
        return
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stopped.set)

    threading.Thread(target=wait_for_end, daemon=True).start()
    if told.part == "produce":
        await peer.produce(lambda send: produce(send, told, stopped))
    else:
        await peer.consume(handler(told), stopped)
