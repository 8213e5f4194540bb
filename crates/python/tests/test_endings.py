"""However and wherever a handler ends, its message ends once, and other messages are not affected.

Run it at scale with
``TRUNKLINE_ENDINGS=100000 TRUNKLINE_ROUNDS=10 python -m pytest tests/test_endings.py``.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import random
import signal
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline.worker.ending import failed, reason_of

COUNT = int(os.environ.get("TRUNKLINE_ENDINGS", "600"))
ROUNDS = int(os.environ.get("TRUNKLINE_ROUNDS", "1"))
#: One of ``EACH`` messages fails; the others are its neighbours.
EACH = 3


class Own(BaseException):
    """An error that is not an ``Exception``."""


class Silent(Exception):
    def __str__(self) -> str:
        raise Own("no text")


class Textless(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]


class Unpicklable(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.lock = code, asyncio.Event


class Declined(Exception):
    """An error that cannot be unpickled: its class needs two arguments, and the pickle has one."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)


class Rude(str):
    """A text whose methods raise."""

    def __len__(self) -> int:
        raise Own("no length")


def _raised(error: BaseException, cause: BaseException | None = None) -> Callable[[], Any]:
    def ending() -> None:
        # The same error is raised many times, and its traceback would grow each time.
        raise error.with_traceback(None) from cause

    return ending


def _generator() -> Any:
    yield 1


async def _coroutine() -> None:
    pass


def _returned(made: Callable[[], Any]) -> Callable[[], Any]:
    return made


#: The endings that fail only their own message.
FAILURES: dict[str, Callable[[], Any]] = {
    "error": _raised(ValueError("bad")),
    "own": _raised(Own("own")),
    "exit": _raised(SystemExit(3)),
    "generator exit": _raised(GeneratorExit()),
    "silent": _raised(Silent()),
    "textless": _raised(Textless()),
    "silent cause": _raised(ValueError("bad"), Silent()),
    "rude": _raised(ValueError(Rude("rude"))),
    "surrogate": _raised(ValueError(os.fsdecode(b"caf\xe9"))),
    "zero": _raised(ValueError("a\0b")),
    "huge": _raised(ValueError("x" * 1_000_000)),
    "stop": _raised(StopIteration(1)),
    "async stop": _raised(StopAsyncIteration(1)),
    "cancelled": _raised(asyncio.CancelledError()),
    "timeout": _raised(asyncio.TimeoutError()),
    "recursion": _raised(RecursionError()),
    "memory": _raised(MemoryError()),
    "declined": _raised(Declined(1, "declined")),
    "unpicklable": _raised(Unpicklable(1, "unpicklable")),
    "group": _raised(Exception("a", [1, object])),
    "coroutine": _returned(_coroutine),
    "generator": _returned(_generator),
    "bury": _raised(trunkline.Bury("enough")),
    "after": _raised(trunkline.RetryAfter(3600)),
}
#: The endings that need a separate process for the handler.
DEADLY: dict[str, Callable[[], Any]] = {
    "_exit": lambda: os._exit(9),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "interrupt": _raised(KeyboardInterrupt()),
}
POLICIES: list[Any] = [
    lambda attempt, error: "soon",
    lambda attempt, error: 10**400,
    lambda attempt, error: object(),
    lambda attempt, error: float("nan"),
    lambda attempt, error: -1,
    lambda attempt, error: float("inf"),
    lambda attempt, error: 1 / 0,
    lambda attempt, error: (_ for _ in ()).throw(Own("policy")),
]

app = trunkline.App()
HOUR = trunkline.Fixed(3600)


@app.task(queue="in_loop", retry=HOUR)
async def in_loop(kind: str) -> Any:
    await asyncio.sleep(0)
    if kind == "own cancel":
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0)
    return FAILURES[kind]() if kind else None


@app.task(queue="in_thread", retry=HOUR)
def in_thread(kind: str) -> Any:
    return FAILURES[kind]() if kind else None


def run_in_process(kind: str) -> Any:
    return {**FAILURES, **DEADLY}[kind]() if kind else None


in_process = app.task(queue="in_process", place="process", retry=HOUR)(run_in_process)


@app.task(queue="in_batch", batch=50, retry=HOUR)
def in_batch(kinds: list[str]) -> list[Any]:
    outcomes: list[Any] = []
    for kind in kinds:
        try:
            outcomes.append(FAILURES[kind]() if kind else None)
        except BaseException as error:
            outcomes.append(error)
    return outcomes


class _Loud(logging.Handler):
    """A handler of ``logging`` that raises an error for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        raise Own("a handler of logging")


def _kinds(names: list[str], count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [chance.choice(names) if nr % EACH == 0 else "" for nr in range(count)]


async def _ends_once(task: Any, kinds: list[str], url: str, name: str) -> None:
    """Checks that each good message is acknowledged, and that each bad message exists once, with
    one counted attempt, waiting or dead."""
    queue = await app.queue(task)
    await queue.enqueue_many(kinds)
    await app.drain(queues=[name], processes=2)
    bad = sorted(kind for kind in kinds if kind)
    with psycopg.connect(url) as sql:
        there = sql.execute(
            f"select payload from trunkline.messages('{name}') union all select payload from trunkline.dead_{name}"
        ).fetchall()
        # An attempt is not counted if the message was released before its handler started.
        counted = sql.execute(
            f"select attempt - released from trunkline.queue_{name} union select attempt from trunkline.dead_{name}"
        ).fetchall()
        stuck = sql.execute(f"select count(*) from trunkline.messages('{name}') where error is null").fetchone()
        sql.execute(f"select trunkline.purge('{name}')")
        sql.execute(f"select trunkline.discard_all('{name}')")
    assert stuck == (0,), "each failed message has an error"
    assert sorted(str(payload) for (payload,) in there) == bad
    assert counted == [(1,)]


@pytest.mark.parametrize("name", ["in_loop", "in_thread", "in_process", "in_batch"])
def test_each_message_ends_once_whatever_its_handler_does(name: str, url: str) -> None:
    app.url = url
    names = [*FAILURES]
    if name == "in_process":
        names += DEADLY
    if name == "in_loop":
        names.append("own cancel")
    count = COUNT if name in ("in_loop", "in_batch") or COUNT > 600 else COUNT // 2
    if name == "in_process":
        count = min(count, max(200, COUNT // 20))  # replacing a dead process takes a second

    async def story() -> None:
        await app.setup()
        for seed in range(ROUNDS):
            await _ends_once(app.tasks[name], _kinds(names, count, seed), url, name)

    asyncio.run(asyncio.wait_for(story(), 60 + COUNT * ROUNDS / 20))


@pytest.mark.parametrize("name", ["in_loop", "in_thread", "in_batch"])
def test_handlers_of_logging_that_raise_change_no_ending(name: str, url: str) -> None:
    app.url = url
    loud = _Loud()
    logger = logging.getLogger("trunkline.worker")
    logger.addHandler(loud)

    async def story() -> None:
        await app.setup()
        await _ends_once(app.tasks[name], _kinds(["error", "own", "bury"], 30, 1), url, name)

    try:
        asyncio.run(asyncio.wait_for(story(), 60))
    finally:
        logger.removeHandler(loud)


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_that_make_no_sense_fail_their_message_alone(policy: Any) -> None:
    for error in (ValueError("bad"), Silent(), Own("own")):
        kind, delay, reason = failed(policy, 1, error)
        assert (kind, delay) == ("retry", 0.0)
        assert "retry policy failed" in reason


def test_declared_policies_that_make_no_sense_are_refused() -> None:
    for retry in (trunkline.Fixed(float("nan")), trunkline.Fixed(-1), trunkline.Backoff(first=float("inf")), "soon"):
        with pytest.raises((TypeError, ValueError)):
            trunkline.App().task(retry=retry)(in_thread.function)  # type: ignore[arg-type]


def test_reasons_are_bounded_and_can_be_stored() -> None:
    for kind, ending in FAILURES.items():
        if kind in ("coroutine", "generator"):
            continue
        try:
            ending()
        except BaseException as error:
            reason = reason_of(error)
            assert len(reason) < 9_000
            reason.encode()
            assert "\n" not in reason.partition("\n")[0]


def test_wrapped_handlers_run_and_generators_are_refused(url: str) -> None:
    app = trunkline.App(url)
    ran: list[str] = []

    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*arguments: Any) -> Any:
            return function(*arguments)

        return within

    @app.task(queue="wrapped")
    @plain
    async def wrapped(text: str) -> None:
        await asyncio.sleep(0)
        ran.append(text)

    def yields(text: str) -> Any:
        yield ran.append(text)

    with pytest.raises(TypeError, match="yields"):
        app.task(queue="yields")(yields)

    async def story() -> None:
        await app.setup()
        await wrapped.enqueue("a")
        assert (await app.drain()).done == 1

    asyncio.run(asyncio.wait_for(story(), 60))
    assert ran == ["a"]


@pytest.mark.parametrize("place", ["loop", "thread", "process", "batch"])
def test_returned_exceptions_fail_their_messages(place: str, url: str) -> None:
    app = trunkline.App(url)
    # A batch of two fails as a whole, because one exception is not a list of outcomes.
    options: dict[str, Any] = {"batch": 2} if place == "batch" else {"place": place}
    task: Any = app.task(queue="returns", retry=HOUR, **options)(returns_in_loop if place == "loop" else returns)

    async def story() -> None:
        await app.setup()
        await task.enqueue_many(["a", "b"])
        summary = await app.drain(processes=1)
        assert (summary.done, summary.retried) == (0, 2)
        for found in await (await app.queue(task)).peek(2):
            assert found.error is not None and found.error.startswith("ValueError: returned")

    asyncio.run(asyncio.wait_for(story(), 60))


class Declined(trunkline.Bury):
    def __init__(self, order: int, code: str) -> None:
        super().__init__(f"order {order}: {code}")


class Later(trunkline.RetryAfter):
    def __init__(self, order: int, code: str) -> None:
        super().__init__(3600, f"order {order}: {code}")


def declines(order: int) -> None:
    raise Declined(order, "51") if order == 0 else Later(order, "52")


def test_subclasses_that_cannot_be_unpickled_bury_and_delay_all_the_same(url: str) -> None:
    app = trunkline.App(url)
    task = app.task(queue="declines", place="process", retry=trunkline.Fixed(0))(declines)

    async def story() -> None:
        await app.setup()
        await task.enqueue_many([0, 1])
        summary = await app.drain(processes=1)
        assert (summary.dead, summary.retried) == (1, 1)
        (waiting,) = await (await app.queue(task)).peek(2)
        assert waiting.error == "order 1: 52"

    asyncio.run(asyncio.wait_for(story(), 60))


def returns(text: Any) -> Any:
    return ValueError("returned")


async def returns_in_loop(text: str) -> Any:
    return ValueError("returned")


@pytest.mark.parametrize("delay", [-1, float("inf"), float("nan"), "soon", None, 366 * 86400])
def test_impossible_delays_of_retry_after_are_named(delay: Any) -> None:
    with pytest.raises(ValueError, match=f"{delay!r} is not a delay: give seconds or a timedelta, from 0 to 365 days"):
        trunkline.RetryAfter(delay)

    class Later(trunkline.RetryAfter):
        def __init__(self) -> None:
            if delay is not None:
                self.delay = delay

    kind, seconds, reason = failed(HOUR, 1, Later())
    assert (kind, seconds) == ("retry", 0.0)
    assert reason.startswith("its delay is unusable (")


@pytest.mark.parametrize("answer", [[None], [None, None, None], {"a": 1, "b": 2}, "ab", 7, iter([None, None])])
def test_batches_with_a_wrong_answer_fail_as_a_whole(answer: Any, url: str) -> None:
    app = trunkline.App(url)

    @app.task(batch=2, retry=HOUR)
    async def batch(texts: list[str]) -> Any:
        return answer

    async def story() -> None:
        await app.setup()
        await batch.enqueue_many(["a", "b"])
        summary = await app.drain()
        assert (summary.done, summary.retried) == (0, 2)

    asyncio.run(asyncio.wait_for(story(), 60))
