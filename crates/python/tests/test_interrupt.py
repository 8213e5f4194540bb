"""Ctrl-C is distinguished from a ``KeyboardInterrupt`` that a handler raises, and a second Ctrl-C
ends the program without counting an attempt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import pytest
from trunkline.sync import Db
from trunkline.worker.interrupt import may_be_of_user


def _raises(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


class _Raises:
    """A handler of SIGINT that is an object."""

    def __call__(self, number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    def method(self, number: int, frame: Any) -> None:
        raise KeyboardInterrupt


#: Handlers of SIGINT with Python code, which is in the traceback.
WITH_CODE: dict[str, Any] = {
    "function": _raises,
    "method": _Raises().method,
    "object": _Raises(),
    "partial function": partial(_raises),
    "partial object": partial(partial(_Raises())),
}
#: Handlers of SIGINT that leave no frame in the traceback.
WITHOUT_CODE: dict[str, Any] = {
    "default": signal.default_int_handler,
    "partial default": partial(signal.default_int_handler),
    "object in C": lru_cache(signal.default_int_handler),
}


@pytest.fixture
def on_sigint(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


def _own() -> None:
    raise KeyboardInterrupt


def _ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def _said(raises: Any) -> bool:
    with pytest.raises(KeyboardInterrupt) as caught:
        raises()
    return may_be_of_user(caught.value)


@pytest.mark.parametrize("on_sigint", WITH_CODE.values(), ids=WITH_CODE, indirect=True)
def test_ctrl_c_and_an_own_error_differ_by_the_traceback(on_sigint: None) -> None:
    assert _said(_ctrl_c) and not _said(_own)


@pytest.mark.parametrize("on_sigint", WITHOUT_CODE.values(), ids=WITHOUT_CODE, indirect=True)
def test_any_interrupt_may_be_ctrl_c_without_a_traceback(on_sigint: None) -> None:
    assert _said(_ctrl_c) and _said(_own)


@pytest.mark.parametrize("on_sigint", [signal.SIG_IGN, signal.SIG_DFL], indirect=True)
def test_no_interrupt_is_ctrl_c_if_python_does_not_handle_it(on_sigint: None) -> None:
    assert not _said(_own)


@pytest.mark.parametrize("on_sigint", [signal.default_int_handler], indirect=True)
def test_no_interrupt_in_another_thread_is_ctrl_c(on_sigint: None) -> None:
    said: list[bool] = []
    thread = threading.Thread(target=lambda: said.append(_said(_own)))
    thread.start()
    thread.join()
    assert said == [False]


PROGRAM = """
import asyncio, os, time, trunkline

app = trunkline.App(os.environ["URL"])

async def busy(yields):
    print("begun", flush=True)
    turns = 0
    while True:
        time.sleep(0.02)
        if yields:
            await asyncio.sleep(0)
        turns += main.cancelling()
        if turns == 10:
            print("shutting down", flush=True)

@app.task(max_batch=1, max_attempts=1)
async def blocks(number: int):
    await busy(False)

@app.task(max_batch=1, max_attempts=1)
async def yields(number: int):
    await busy(True)

@app.task(max_batch=1, max_attempts=1, batch=10)
async def batches(numbers: list[int]):
    await busy(False)

async def run():
    global main
    main = asyncio.current_task()
    await app.run(queues=[os.environ["QUEUE"]], shutdown_after=3600)

asyncio.run(run())
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.run has no handler of SIGINT")
@pytest.mark.parametrize("name", ["blocks", "yields", "batches"])
def test_second_ctrl_c_ends_the_program_and_counts_no_attempt(url: str, name: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue(name, int, max_batch=1, max_attempts=1)
    queue = db.queue(name, int)
    queue.enqueue(1)
    environment = {**os.environ, "URL": url, "QUEUE": name}
    # A shell in the background ignores SIGINT, and asyncio then installs no handler.
    program = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + PROGRAM
    child = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(60, child.kill)
    limit.start()
    try:
        assert child.stdout is not None
        for line in ["begun\n", "shutting down\n"]:
            assert child.stdout.readline() == line, child.communicate()
            child.send_signal(signal.SIGINT)
        said = child.communicate()[1]
    finally:
        limit.cancel()
        child.kill()
        child.wait()
    assert child.returncode == -signal.SIGINT and "KeyboardInterrupt" in said, said
    assert "failed" not in said
    stats = queue.stats()
    assert (stats.due, stats.leased, stats.dead) == (1, 0, 0), said
