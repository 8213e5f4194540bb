"""A handler's result fails its message if it contains an error, or work that has not ended."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from multiprocessing.pool import ThreadPool
from threading import Event
from typing import Any

import pytest
import trunkline
from trunkline.sync import Draft as SyncDraft
from trunkline.worker.ending import failed
from trunkline.worker.results import error_in

HOUR = trunkline.Fixed(3600)
#: Before Python 3.11, pytest installs the package for groups.
group: Any = import_module("builtins" if sys.version_info >= (3, 11) else "exceptiongroup").ExceptionGroup


async def works() -> None: ...


async def fails() -> None:
    raise ValueError("one of several")


def _future(error: BaseException | None = None, result: Any = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


def _looped(value: Any) -> list[Any]:
    values: list[Any] = [value]
    values.append(values)
    return values


#: Results whose work failed or has not ended, with the beginning of the error's text.
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (lambda: [1, ValueError("one of several")], "one of several"),
    "tuple": (lambda: (None, ValueError("one of several")), "one of several"),
    "set": (lambda: {ValueError("one of several")}, "one of several"),
    "dict": (lambda: {"a": 1, "b": ValueError("one of several")}, "one of several"),
    "nested": (lambda: [[], [("a", [ValueError("one of several")])]], "one of several"),
    "looped": (lambda: _looped(ValueError("one of several")), "one of several"),
    "coroutines": (lambda: [works(), works()], "the handler returned a coroutine that was not awaited"),
    "future": (Future, "the handler returned a future whose work has not ended"),
    "futures": (lambda: [_future(), Future()], "the handler returned a future whose work has not ended"),
    "failed future": (lambda: _future(ValueError("one of several")), "one of several"),
    "future of an error": (lambda: _future(result=[ValueError("one of several")]), "one of several"),
    "map": (lambda: map(int, "12"), "the handler returned a map, which works only while it is read"),
    "filter": (lambda: [filter(int, "12")], "the handler returned a filter, which works"),
    "starmap": (lambda: itertools.starmap(pow, [(1, 2)]), "the handler returned a starmap, which works"),
    "generators": (lambda: [(n for n in range(3))], "the handler returned a generator"),
    "draft": (lambda: SyncDraft(1, None, None), "the handler returned a draft that was not enqueued"),  # type: ignore[arg-type]
}
#: Results of work that has ended.
GOOD: dict[str, Callable[[], Any]] = {
    "numbers": lambda: list(range(1000)),
    "looped": lambda: _looped(1),
    "class": lambda: [ValueError],
    "futures": lambda: [_future(), _future(result=[1])],
    "dict": lambda: {"a": {"b": (1, None)}},
    "object": object,
    "file": lambda: open("/dev/null"),
}


@pytest.mark.parametrize("name", BAD)
def test_results_of_unfinished_work_are_errors(name: str) -> None:
    made, text = BAD[name]
    assert str(error_in(made())).startswith(text)


@pytest.mark.parametrize("name", GOOD)
def test_results_of_finished_work_are_none(name: str) -> None:
    assert error_in(GOOD[name]()) is None


def test_work_of_pools_may_not_have_ended() -> None:
    may_end = Event()
    with ThreadPoolExecutor(1) as pool, ThreadPool(1) as other:
        running = pool.submit(may_end.wait)
        try:
            assert "has not ended" in str(error_in(running))
            for result in (other.apply_async(may_end.wait), other.imap(print, [])):
                assert "the handler returned a pool's" in str(error_in(result))
        finally:
            may_end.set()
        running.result(30)
        assert error_in(running) is None


async def gathers(number: int) -> Any:
    return await asyncio.gather(works(), fails(), return_exceptions=True)


async def waits(number: int) -> Any:
    return await asyncio.wait([asyncio.ensure_future(works()), asyncio.ensure_future(fails())])


def maps(number: int) -> Any:
    return map(int, "12")


def lists(number: int) -> Any:
    return [None, ValueError("one of several")]


async def each(numbers: list[int]) -> Any:
    return await asyncio.gather(*(fails() if number else works() for number in numbers), return_exceptions=True)


def each_lists(numbers: list[int]) -> Any:
    return [[ValueError("one of several")] if number else None for number in numbers]


CASES: list[tuple[Any, dict[str, Any], int]] = [
    (gathers, {}, 0),
    (waits, {}, 0),
    (maps, {}, 0),
    (lists, {}, 0),
    (lists, {"place": "process"}, 0),
    (maps, {"place": "process"}, 0),
    (each, {"batch": 2}, 1),
    (each_lists, {"batch": 2}, 1),
    (each_lists, {"batch": 2, "place": "process"}, 1),
]


@pytest.mark.parametrize(("handler", "options", "done"), CASES, ids=lambda of: getattr(of, "__name__", str(of)))
def test_messages_of_unfinished_work_are_retried(handler: Any, options: dict[str, Any], done: int, url: str, run: Any) -> None:
    app = trunkline.App(url)
    task: Any = app.task(queue="results", retry=HOUR, **options)(handler)

    async def story() -> None:
        await app.setup()
        await task.enqueue_many([0, 1])
        summary = await app.drain(processes=1)
        assert (summary.done, summary.retried) == (done, 2 - done)

    run(story())


def test_an_error_that_permits_a_retry_decides() -> None:
    bury, later, error = trunkline.Bury("no"), trunkline.RetryAfter(60), ValueError("a")
    assert error_in([bury, later, error]) is error
    assert error_in([bury, later]) is later
    assert error_in([bury]) is bury


def test_groups_of_buries_bury_and_groups_with_others_do_not() -> None:
    bury, later = trunkline.Bury("no such address"), trunkline.RetryAfter(60, "soon")
    assert failed(HOUR, 1, group("of tasks", [bury, group("within", [bury])])) == ("dead", 0.0, "no such address")
    assert failed(HOUR, 1, group("of tasks", [bury, later])) == ("after", 60.0, "soon")
    assert failed(HOUR, 1, group("of tasks", [bury, ValueError("a")]))[0] == "retry"


def buries_in_a_group(number: int) -> None:
    raise group("of tasks", [trunkline.Bury("no such address")])


@pytest.mark.parametrize("place", ["thread", "process"])
def test_message_is_dead_after_a_group_of_buries(place: Any, url: str, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = trunkline.App(url)
    task: Any = app.task(queue="groups", retry=HOUR, place=place)(buries_in_a_group)

    async def story() -> None:
        await app.setup()
        await task.enqueue(1)
        with caplog.at_level(logging.WARNING, "trunkline.worker"):
            assert (await app.drain(processes=1)).dead == 1
        (letter,) = await (await app.queue(task)).dead_letters()
        assert letter.error == "no such address"

    run(story())
