"""A signal shuts the worker down gracefully, wherever it is sent. No message is lost, and no
attempt is counted for a handler that did not start."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trunkline
from trunkline.sync import Db, Queue
from trunkline.worker.processes import _Process

PROGRAM = """
import asyncio, os, time, trunkline

app = trunkline.App(os.environ["URL"])

def begun(number):
    with open("begun", "a") as file:
        file.write(f"{number}\\n")

@app.task(max_batch=1, lease=5, max_attempts=1)
async def loops(number: int):
    begun(number)
    await asyncio.sleep(0.5)

@app.task(max_batch=1, lease=5, max_attempts=1)
def threads(number: int):
    begun(number)
    time.sleep(3600 if number < 0 else 0.5)

@app.task(max_batch=1, lease=5, max_attempts=1, place="process")
def processes(number: int):
    begun(number)
    time.sleep(3600 if number < 0 else 0.5)

@app.task(max_batch=1, max_attempts=1)
async def kept(number: int):
    begun(number)
    await asyncio.to_thread(time.sleep, 3600)

@app.task(max_batch=1, max_attempts=1)
async def stubborn(number: int):
    begun(number)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@app.task(max_batch=1, max_attempts=1)
async def blocking(number: int):
    begun(number)
    time.sleep(3600)

@app.task(max_batch=1, max_attempts=1)
async def thrown(number: int):
    begun(number)
    if number == 0:
        async def leaves():
            raise SystemExit(3)
        await asyncio.sleep(0.2)
        await asyncio.create_task(leaves())
    await asyncio.sleep(3600)

@app.task(max_batch=1, max_attempts=1)
async def stopped(number: int):
    begun(number)
    if number == 0:
        asyncio.get_running_loop().stop()
    await asyncio.sleep(3600)
"""
NAMES = ["loops", "threads", "processes", "kept", "stubborn", "blocking", "thrown", "stopped"]


class Place:
    """A folder with a program, its queues, and its workers."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.workers: list[subprocess.Popen[str]] = []
        (folder / "tasks.py").write_text(PROGRAM)
        db = Db.connect(url)
        db.migrate()
        self.queues: dict[str, Queue[int]] = {}
        for name in NAMES:
            db.create_queue(name, int, max_batch=1, max_attempts=1)
            self.queues[name] = db.queue(name, int)

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", *options]
        # Starts a separate session, so that a signal to its group reaches no other process.
        worker = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, "URL": self.url}, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.workers.append(worker)
        return worker

    def begun(self) -> int:
        file = self.folder / "begun"
        return len(file.read_text().split()) if file.exists() else 0

    def until(self, what: Callable[[], Any], seconds: float = 60) -> None:
        limit = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < limit, [worker.poll() for worker in self.workers]
            time.sleep(0.02)

    def counted(self, name: str) -> tuple[int, int, int]:
        """Returns the numbers of waiting messages without and with a counted attempt, and of dead
        letters."""
        with psycopg.connect(self.url) as sql:
            row = sql.execute(
                f"select count(*) filter (where attempt = released), count(*) filter (where attempt > released),"
                f" (select count(*) from trunkline.dead_{name}) from trunkline.queue_{name}"
            ).fetchone()
        assert row is not None
        return row


@pytest.fixture
def place(tmp_path: Path, url: str) -> Iterator[Place]:
    place = Place(tmp_path, url)
    yield place
    for worker in place.workers:  # still running only if the test failed
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("options", [(), ("--processes", "2"), ("--reload",)])
def test_a_signal_to_the_group_ends_all_in_order(place: Place, options: tuple[str, ...], number: signal.Signals) -> None:
    worker = place.start("--concurrency", "2", *options)
    for name in NAMES[:3]:
        place.queues[name].enqueue_many(range(30))
    place.until(lambda: place.begun() >= 6)
    os.killpg(worker.pid, number)
    told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0, told
    assert "ending immediately" not in told
    begun = place.begun()
    left = [place.counted(name) for name in NAMES[:3]]
    assert all((counted, dead) == (0, 0) for _, counted, dead in left), (left, told)
    assert sum(waiting for waiting, _, _ in left) + begun == 90


@pytest.mark.parametrize("name", ["threads", "blocking"])
def test_a_second_signal_ends_at_once(place: Place, name: str) -> None:
    worker = place.start("--queue", name)
    place.queues[name].enqueue(-1)
    place.until(lambda: place.begun() == 1)
    limit = time.monotonic() + 30
    while worker.poll() is None and time.monotonic() < limit:
        worker.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    assert worker.returncode == 1


def test_a_drain_ends_in_order_by_a_signal(place: Place) -> None:
    worker = place.start("--drain", "--concurrency", "2", "--queue", "loops")
    place.queues["loops"].enqueue_many(range(60))
    place.until(lambda: place.begun() >= 2)
    worker.send_signal(signal.SIGTERM)
    told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0, told
    waiting, counted, dead = place.counted("loops")
    assert (counted, dead) == (0, 0) and waiting + place.begun() == 60


@pytest.mark.parametrize("name", ["threads", "processes", "kept", "stubborn"])
def test_a_handler_that_hangs_does_not_keep_the_program(place: Place, name: str) -> None:
    worker = place.start("--queue", name, "--shutdown-after", "1")
    place.queues[name].enqueue(-1)
    place.until(lambda: place.begun() == 1)
    worker.send_signal(signal.SIGTERM)
    told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0, told
    assert place.counted(name) == (1, 0, 0), "released, and not counted"


@pytest.mark.parametrize("steps", range(3))
@pytest.mark.parametrize("verb", ["run", "drain"])
def test_a_stop_is_remembered_from_the_call_on(url: str, run: Any, verb: str, steps: int) -> None:
    app = trunkline.App(url)

    @app.task()
    async def note(text: str) -> None: ...

    async def story() -> None:
        await app.setup()
        await note.enqueue("a")
        running = asyncio.ensure_future(getattr(app, verb)())
        for _ in range(steps):
            await asyncio.sleep(0)
        app.stop()
        ended = await asyncio.wait_for(running, 30)
        assert ended.done + (await app.drain()).done == 1, "the earlier stop did not affect this drain"

    run(story())


@pytest.mark.parametrize(("name", "code"), [("thrown", 3), ("stopped", 1)])
def test_end_of_event_loop_ends_worker_in_order(place: Place, name: str, code: int) -> None:
    place.queues[name].enqueue_many(range(20))
    worker = place.start("--queue", name, "--shutdown-after", "1")
    told = worker.communicate(timeout=60)[1]
    assert worker.returncode == code, told
    waiting, counted, dead = place.counted(name)
    assert waiting + counted + dead == 20
    assert counted + dead <= 1, "the other messages were released, and not counted"


@pytest.mark.parametrize("verb", ["run", "drain"])
def test_a_stop_ends_what_waits_for_a_silent_database(run: Any, verb: str) -> None:
    async def story() -> None:
        asked = asyncio.Event()

        def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.set()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        app = trunkline.App(f"postgres://postgres@127.0.0.1:{server.sockets[0].getsockname()[1]}/app?sslmode=disable")

        @app.task()
        async def note(text: str) -> None: ...

        running = asyncio.ensure_future(getattr(app, verb)())
        await asked.wait()
        app.stop()
        assert (await asyncio.wait_for(running, 10)).is_nothing
        server.close()

    run(story())


def test_a_signal_while_it_is_set_up_ends_it(place: Place) -> None:
    with psycopg.connect(place.url) as sql:
        sql.execute("lock table trunkline.version, trunkline.migration in access exclusive mode")
        worker = place.start()
        place.until(lambda: sql.execute("select exists (select from pg_locks where not granted)").fetchone() == (True,))
        worker.send_signal(signal.SIGTERM)
        told = worker.communicate(timeout=60)[1]
        assert worker.returncode == 0, told


def poison(number: int) -> None:
    if number == 7:
        os._exit(9)


app = trunkline.App()
poisons = app.task(queue="poisons", place="process", max_attempts=3, retry=trunkline.Fixed(0))(poison)


def slow(number: int) -> None:
    time.sleep(0.1)


slows = app.task(queue="slows", place="process", max_attempts=1, timeout=3, retry=trunkline.Fixed(0))(slow)


def test_a_process_that_dies_takes_its_own_message_alone(url: str, run: Any) -> None:
    app.url = url

    async def story() -> None:
        await app.setup()
        await poisons.enqueue_many(range(40))
        summary = await app.drain(queues=["poisons"], processes=2)
        assert (summary.done, summary.dead + summary.retried) == (39, 3)
        (letter,) = await (await app.queue(poisons)).dead_letters()
        assert letter.payload == 7 and "died" in letter.error

    run(story())


def leaves(number: int) -> None:
    if number == 0:
        threading.Timer(0.2, os._exit, [9]).start()  # after the handler has ended


leaving = app.task(queue="leaving", place="process", max_attempts=1)(leaves)


def test_a_process_that_dies_while_idle_fails_no_message(url: str, run: Any) -> None:
    app.url = url

    async def story() -> None:
        await app.setup()
        await leaving.enqueue(0)
        working = asyncio.ensure_future(app.run(queues=["leaving"], processes=1))
        while not multiprocessing.active_children():
            await asyncio.sleep(0.01)
        while multiprocessing.active_children():
            await asyncio.sleep(0.01)
        await leaving.enqueue(1)
        while (await (await app.queue(leaving)).stats()).messages:
            await asyncio.sleep(0.01)
        app.stop()
        summary = await working
        assert (summary.done, summary.dead) == (2, 0)

    run(story())


LEFT = """
import asyncio, os, trunkline

app = trunkline.App(os.environ["URL"])

def nothing(number):
    pass

task = app.task(queue="left", place="process")(nothing)

if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.setup())
    working = loop.create_task(app.run(processes=1))
    while not app.is_running:
        loop.run_until_complete(asyncio.sleep(0.05))
    print("left", flush=True)
"""


def test_program_that_leaves_its_worker_ends_all_the_same(url: str, tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text(LEFT)
    ended = subprocess.run([sys.executable, "left.py"], cwd=tmp_path, env={**os.environ, "URL": url}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and ended.stdout == "left\n", ended


def test_no_more_begins_than_there_are_processes(url: str, run: Any) -> None:
    app.url = url

    async def story() -> None:
        await app.setup()
        await slows.enqueue_many(range(80))
        summary = await app.drain(queues=["slows"], processes=2)
        assert (summary.done, summary.dead) == (80, 0), "the timeout starts with the handler"

    run(story())


def test_threads_that_hang_hold_up_nothing_behind_them(url: str, run: Any) -> None:
    app = trunkline.App(url)
    free = threading.Event()

    @app.task(timeout=3, max_attempts=1, retry=trunkline.Fixed(3600))
    def hangs(number: int) -> None:
        if number < 2:
            free.wait(60)

    async def story() -> None:
        await app.setup()
        await hangs.enqueue_many(range(12))
        summary = await app.drain(concurrency=2)
        assert (summary.done, summary.retried + summary.dead) == (10, 2)

    try:
        run(story())
    finally:
        free.set()


def dies(number: int) -> None:
    if number < 3:
        os._exit(9)


dying = app.task(queue="dying", place="process", timeout=2, max_attempts=1)(dies)


def lasts(number: int) -> None:
    if number == 0:
        time.sleep(3600)


lasting = app.task(queue="lasting", place="process", timeout=2, max_attempts=1)(lasts)


@pytest.mark.parametrize(("task", "dead", "why"), [(dying, [0, 1, 2], "code 9"), (lasting, [0], "longer than 2 s")])
def test_a_timeout_in_processes_begins_with_the_handler(
    task: Any, dead: list[int], why: str, url: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.url = url
    ready = _Process.ready

    def ready_late(process: _Process) -> None:
        ready(process)
        time.sleep(2.5)  # so that a process starts more slowly than the timeout, on any machine

    monkeypatch.setattr(_Process, "ready", ready_late)

    async def story() -> None:
        await app.setup()
        await task.enqueue_many(range(10))
        summary = await app.drain(queues=[task.queue], processes=1)
        assert summary.done == 10 - len(dead)
        letters = await (await app.queue(task)).dead_letters()
        assert sorted(letter.payload for letter in letters) == dead
        assert all(why in letter.error for letter in letters)

    run(story())


def _raises(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


#: Handlers of SIGINT, and whether the worker ends if a handler raises ``KeyboardInterrupt``.
ON_SIGINT: dict[str, tuple[Any, bool]] = {"of the program": (_raises, False), "of Python": (signal.default_int_handler, True)}


@pytest.mark.parametrize("name", ON_SIGINT)
@pytest.mark.parametrize("batch", [None, 1])
def test_interrupt_raised_by_a_handler_counts_the_attempt(url: str, caplog: pytest.LogCaptureFixture, name: str, batch: int | None) -> None:
    on_sigint, ends = ON_SIGINT[name]
    app = trunkline.App(url)

    async def handle(numbers: Any) -> None:
        if numbers in (1, [1]):
            raise KeyboardInterrupt

    interrupted: Any = app.task(queue="interrupted", type=int, max_batch=1, max_attempts=1, **({} if batch is None else {"batch": batch}))(handle)

    async def story() -> None:
        await app.setup()
        for number in range(3):
            await interrupted.enqueue(number)
        before = signal.signal(signal.SIGINT, on_sigint)
        try:
            await app.drain(shutdown_after=5)
        finally:
            signal.signal(signal.SIGINT, before)

    if ends:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(story())
        assert "the worker ends: KeyboardInterrupt, from Ctrl-C or from the handler of queue interrupted" in caplog.text
    else:
        asyncio.run(asyncio.wait_for(story(), 30))
        assert "the worker ends" not in caplog.text
    queue = Db.connect(url).queue("interrupted", int)
    (letter,) = queue.dead_letters()
    assert (letter.payload, letter.error.startswith("KeyboardInterrupt")) == (1, True)
    assert (" of interrupted failed" in caplog.text) and queue.stats().leased == 0
    assert ends or queue.stats().due == 0


def test_interrupt_from_ctrl_c_in_a_handler_ends_worker(url: str) -> None:
    app = trunkline.App(url)

    @app.task(max_attempts=1)
    async def interrupted(number: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    async def story() -> None:
        await app.setup()
        await interrupted.enqueue(1)
        before = signal.signal(signal.SIGINT, _raises)
        try:
            await app.run(shutdown_after=1)
        finally:
            signal.signal(signal.SIGINT, before)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(story())
    stats = Db.connect(url).queue("interrupted", int).stats()
    assert (stats.due, stats.leased, stats.dead) == (0, 0, 1)
