"""The protocol of the benchmark (README.md in this folder) for the peers in Python.

A peer's load.py defines how to install it, send one message, send many and consume. This module does
everything that is the same for all peers.
"""

import asyncio
import base64
import json
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

EMPTY_PAYLOAD = len('{"at":1763737000000000,"pad":""}')
OF_A_KEY = '"key":1000,"nr":10,'
# The letters are random, because repetition would be compressed.
LETTERS = base64.urlsafe_b64encode(os.urandom(768 * 1024)).decode()
PROGRESS_SECONDS = 0.5
SEEDERS = 2  # one seeder prepares its call while the other waits for an answer
LAST_CALL_SECONDS = 5  # for calls in flight at the end, and for the consumers to stop
SPARSE_RATE = 200


class Missing(Exception):
    """The peer cannot run here. The text gives the reason."""


@dataclass(slots=True)
class Message:
    at: int  # microseconds since 1970
    pad: str

    def text(self) -> str:
        return f'{{"at":{self.at},"pad":"{self.pad}"}}'


@dataclass(slots=True)
class Keyed(Message):
    key: int
    nr: int  # the message's number among those of its key, from 0


@dataclass(frozen=True)
class Options:
    url: str
    case: str
    padding: int
    batch: int
    producers: int
    consumers: int
    rate: float | None  # None means as fast as the calls are answered
    backlog: int
    micros: int
    wait: str
    keys: int  # 0 means messages without keys

    @property
    def pad(self) -> str:
        """Returns a random piece of the letters."""
        at = int(random.random() * len(LETTERS))
        text = LETTERS[at:at + self.padding]
        while len(text) < self.padding:
            text += LETTERS[:self.padding - len(text)]
        return text

    @classmethod
    def from_environment(cls) -> "Options":
        told = {name: os.environ[f"BENCH_{name}"] for name in (
            "URL", "CASE", "PAYLOAD", "BATCH", "PRODUCERS", "CONSUMERS", "RATE", "BACKLOG", "SECONDS", "WAIT")}
        if told["CASE"] not in ("send", "drain", "cycle"):
            raise Missing(f"no case {told['CASE']}")
        if int(told["PAYLOAD"]) < EMPTY_PAYLOAD:
            raise Missing(f"a payload has at least {EMPTY_PAYLOAD} bytes")
        keys = int(os.environ.get("BENCH_KEYS", 0))
        return cls(
            url=told["URL"],
            case=told["CASE"],
            padding=max(0, int(told["PAYLOAD"]) - EMPTY_PAYLOAD - (len(OF_A_KEY) if keys else 0)),
            batch=int(told["BATCH"]),
            producers=int(told["PRODUCERS"]),
            consumers=int(told["CONSUMERS"]),
            rate=None if told["RATE"] == "max" else float(told["RATE"]),
            backlog=int(told["BACKLOG"]),
            micros=int(float(told["SECONDS"]) * 1e6),
            wait=told["WAIT"],
            keys=keys,
        )


class Peer(Protocol):
    version: str
    seed_batch: int  # messages per call when the backlog is sent

    def __init__(self, options: Options) -> None: ...

    def settings(self) -> str: ...

    async def open(self) -> None:
        """Installs the schema and connects the producers."""

    async def send(self, message: Message) -> None: ...

    async def send_many(self, messages: list[Message]) -> None: ...

    async def consume(self, received: Callable[..., None], stop: asyncio.Event) -> None:
        """Calls `received` with the `at` of each message, until `stop` is set.

        If messages have keys, also passes `key` and `nr`.
        """

    async def close(self) -> None: ...


def run(peer: type[Peer], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    try:
        options = Options.from_environment()
        # The loop's runner is not closed. So the process ends without waiting for leftover
        # messages, or for the thread that reads standard input.
        asyncio.Runner(loop_factory=loop_factory).run(contend(peer(options), options))
    except Missing as missing:
        say(missing=str(missing))
    except BaseException as error:
        # Some peers wrap the cause in an error that does not name it.
        say(error="; because of ".join(" ".join(f"{type(e).__name__}: {e}".split()) for e in (error, error.__cause__) if e))
        os._exit(1)
    os._exit(0)


async def contend(peer: Peer, options: Options) -> None:
    tally = Tally(options)
    stop = asyncio.Event()
    consumers = None
    async with saying_something():
        await peer.open()
        await seed(peer, options)
        if options.case == "send":
            await asyncio.gather(*(send(peer, [message(options)] * options.batch) for _ in range(options.producers)))
        elif options.case == "cycle":
            consumers = asyncio.create_task(consume(peer, tally, stop))
            if not options.backlog:
                await warm_up(peer, options, tally, consumers)

    say(ready={"version": peer.version, "runtime": f"Python {platform.python_version()}", "settings": peer.settings()})
    if not await asyncio.to_thread(sys.stdin.readline):
        return
    end_of_input = asyncio.create_task(asyncio.to_thread(sys.stdin.read))

    tally.start_clock()
    report = asyncio.create_task(tally.report())
    if options.case == "drain":
        consumers = asyncio.create_task(consume(peer, tally, stop))
    producers = None
    if options.case != "drain" and options.rate != 0:
        producers = asyncio.create_task(produce(peer, options, tally))
    over = asyncio.create_task(tally.over())
    await first_of(over, end_of_input, beside=(producers, consumers, report))
    report.cancel()
    tally.end = min(tally.end, now())  # the input may have ended before the time was over
    if producers:
        # No call begins after the end, and calls that are answered after the end are not counted.
        answered, _ = await asyncio.wait({producers}, timeout=LAST_CALL_SECONDS)
        for task in answered:
            task.result()
    if over.done():
        tally.say_result()
    await first_of(end_of_input, beside=(consumers,))

    stop.set()
    try:
        async with asyncio.timeout(LAST_CALL_SECONDS):
            if consumers:
                await consumers
            await peer.close()
    except TimeoutError:
        print(f"{peer.version} did not stop within {LAST_CALL_SECONDS} seconds", file=sys.stderr)


def say(**line: object) -> None:
    print(json.dumps(line, separators=(",", ":")), flush=True)


def now() -> int:
    return time.time_ns() // 1000


def message(options: Options) -> Message:
    return Message(now(), options.pad)


async def send(peer: Peer, messages: list[Message]) -> None:
    if len(messages) == 1:
        await peer.send(messages[0])
    else:
        await peer.send_many(messages)


@asynccontextmanager
async def saying_something() -> AsyncIterator[None]:
    """Reports progress.

    The runner ends a contender after twenty silent seconds, and migrations can take longer.
    """

    async def speak() -> None:
        while True:
            await asyncio.sleep(5)
            say(progress={"sent": 0, "received": 0})

    speaker = asyncio.create_task(speak())
    yield
    speaker.cancel()


async def seed(peer: Peer, options: Options) -> None:
    """Sends the backlog. Each seeder has at most one batch in memory."""
    firsts = iter(range(0, options.backlog, peer.seed_batch))

    async def seeder() -> None:
        for first in firsts:
            count = min(peer.seed_batch, options.backlog - first)
            await peer.send_many([message(options)] * count)

    await asyncio.gather(*(seeder() for _ in range(SEEDERS)))


async def consume(peer: Peer, tally: "Tally", stop: asyncio.Event) -> None:
    await peer.consume(tally.receive, stop)
    if not stop.is_set():
        raise RuntimeError("the consumers stopped by themselves")


async def warm_up(peer: Peer, options: Options, tally: "Tally", consumers: asyncio.Task) -> None:
    if options.keys:
        # The calls come one after another. A peer may create objects at a partition's first
        # message, and concurrent calls would collide.
        for caller in range(options.producers):
            await peer.send(tally.keyed(caller, now()))
    else:
        await peer.send(message(options))
    await first_of(asyncio.create_task(tally.first.wait()), beside=(consumers,))


async def produce(peer: Peer, options: Options, tally: "Tally") -> None:
    batches = iter(range(0, sys.maxsize, options.batch))

    def due(k: int) -> int:
        return tally.start + round(k / options.rate * 1e6)

    async def as_answered(caller: int) -> None:
        while now() < tally.end:
            called = now()
            if options.keys:
                await peer.send(tally.keyed(caller, called))
            else:
                await send(peer, [Message(called, options.pad) for _ in range(options.batch)])
            tally.send(called)

    async def as_due(_: int) -> None:
        # The next free producer takes the next batch. It sends the batch when its last message is due.
        for k in batches:
            ats = [due(k + i) for i in range(options.batch)]
            if ats[-1] >= tally.end:
                return
            await until(ats[-1], precisely=options.rate / options.batch <= SPARSE_RATE)
            if now() >= tally.end:
                return
            called = now()
            await send(peer, [Message(at, options.pad) for at in ats])
            tally.send(called)

    producer = as_answered if options.rate is None else as_due
    await asyncio.gather(*(producer(caller) for caller in range(options.producers)))


async def until(moment: int, precisely: bool) -> None:
    # The loop's timers count whole milliseconds, which is too coarse for the latencies. So the
    # clock is polled during the last millisecond, unless the rate is so high that this would keep a
    # core busy.
    while (left := moment - now()) > 0:
        await asyncio.sleep(left / 1e6 if not precisely else max(0, left - 1000) / 1e6)


async def first_of(*awaited: asyncio.Task, beside: tuple[asyncio.Task | None, ...]) -> None:
    """Returns when one of the awaited tasks is done.

    Raises if one of them, or a task in `beside`, fails.
    """
    running = {task for task in (*awaited, *beside) if task}
    while not any(task.done() for task in awaited):
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


class Tally:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.start = self.end = sys.maxsize
        self.sent = 0
        self.received = 0
        self.latencies: Counter[int] = Counter()
        self.calls: Counter[int] = Counter()
        self.next_of: Counter[int] = Counter()
        self.disordered = 0
        self.first = asyncio.Event()
        self.drained = asyncio.Event()

    def start_clock(self) -> None:
        self.start = now()
        self.end = self.start + self.options.micros

    def send(self, called: int) -> None:
        answered = now()
        if answered <= self.end:
            self.sent += self.options.batch
            if self.options.case == "send":
                self.latencies[three_digits(answered - called)] += 1

    def keyed(self, caller: int, at: int) -> Keyed:
        """Returns the next message of a caller.

        Each caller has its own keys and uses them in turn. So the order of each key's messages is the
        order of the caller's calls.
        """
        turn = self.calls[caller]
        self.calls[caller] += 1
        keys, producers = self.options.keys, self.options.producers
        own = -(-(keys - caller) // producers)
        return Keyed(at, self.options.pad, 1 + caller + producers * (turn % own), turn // own)

    def receive(self, at: int, key: int | None = None, nr: int = 0) -> None:
        moment = now()
        self.first.set()
        if key is not None:
            # Counts a message that is not the next one of its key: it is a repetition, or it skips
            # other messages.
            self.disordered += nr != self.next_of[key]
            self.next_of[key] = max(self.next_of[key], nr + 1)
        if not self.start <= moment <= self.end:
            return
        self.received += 1
        # Messages of a backlog have no latency, because they were sent before the clock started.
        if self.options.case == "cycle" and at >= self.start:
            self.latencies[three_digits(moment - at)] += 1
        if self.options.case == "drain" and self.received == self.options.backlog:
            self.end = moment
            self.drained.set()

    async def over(self) -> None:
        try:
            await asyncio.wait_for(self.drained.wait(), self.options.micros / 1e6)
        except TimeoutError:
            pass

    async def report(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            say(progress={"sent": self.sent, "received": self.received})

    def say_result(self) -> None:
        seconds = (self.end - self.start) / 1e6
        say(progress={"sent": self.sent, "received": self.received})
        say(latency=dict(sorted(self.latencies.items())))
        disordered = {"disordered": self.disordered} if self.options.keys else {}
        say(done={"sent": self.sent, "received": self.received, "seconds": seconds, **disordered})


def three_digits(micros: int) -> int:
    if micros < 1000:
        return max(0, micros)
    unit = 10 ** (len(str(micros)) - 3)
    return micros // unit * unit
