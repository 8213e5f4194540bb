"""The processes of handlers survive a fork of the worker, and are replaced when they die."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from trunkline.worker.context import Context
from trunkline.worker.hanging import Hanging
from trunkline.worker.processes import Processes, ProcessesClosed, _Process
from trunkline.worker.threads import Threads

FORKS = """
import asyncio, os, sys, trunkline

app = trunkline.App(os.environ["URL"])

def notes(number):
    with open("noted", "a") as file:
        file.write(f"{os.getpid()}\\n")

task = app.task(queue="notes", place="process", max_attempts=1)(notes)

async def noted(count):
    await task.enqueue(count)
    while (await (await app.queue(task)).stats()).messages:
        await asyncio.sleep(0.01)

if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.setup())
    working = loop.create_task(app.run(processes=1))
    loop.run_until_complete(noted(1))
    if not (child := os.fork()):
        sys.exit()
    os.waitpid(child, 0)
    loop.run_until_complete(noted(2))
    app.stop()
    print("done", loop.run_until_complete(working).done)
"""


def test_a_fork_that_ends_leaves_processes_to_its_worker(url: str, tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    ended = subprocess.run([sys.executable, "forks.py"], cwd=tmp_path, env={**os.environ, "URL": url}, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "done 2\n", ended
    first, second = (tmp_path / "noted").read_text().split()
    assert first == second, "the same process"


#: In a process for handlers, the module ends the process when it is idle for the first time.
DIES = """
import multiprocessing, os, trunkline
from multiprocessing.connection import Connection

app = trunkline.App()

def receives_nothing(*_):
    os._exit(9)

if multiprocessing.parent_process() is not None:
    Connection.recv_bytes = receives_nothing

def never(number):
    pass

task = app.task(queue="never", place="process", max_attempts=1)(never)
"""


def test_message_is_given_back_once_several_processes_died_idle(
    url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "dies_while_idle.py").write_text(DIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("dies_while_idle")
    module.app.url = url
    ready = _Process.ready

    def ready_and_ended(process: _Process) -> None:
        ready(process)
        process.join()

    monkeypatch.setattr(_Process, "ready", ready_and_ended)

    async def story() -> None:
        await module.app.setup()
        await module.task.enqueue(1)
        with caplog.at_level(logging.WARNING, "trunkline.worker"):
            working = asyncio.ensure_future(module.app.run(processes=2))
            while not (told := [one.getMessage() for one in caplog.records if "cannot start" in one.getMessage()]):
                assert not working.done()
                await asyncio.sleep(0.01)
            module.app.stop()
            assert (await working).released == 1
        assert "died while it was idle" in told[0] and "code 9" in told[0]
        queue = await module.app.queue(module.task)
        assert await queue.dead_letters() == []
        (message,) = await queue.lease(1)
        assert message.attempts == 1, "no attempt was counted"
        warnings = [one.getMessage() for one in caplog.records if "an idle process" in one.getMessage()]
        assert warnings == ["an idle process for handlers ended with code 9: a new process starts"] * 5

    run(story())


#: The handler's process dies, and a process that it forked lives on with copies of its pipes.
LEAVES = """
import os, signal, time, trunkline

app = trunkline.App()

def leave(how):
    if not (child := os.fork()):
        while not os.path.exists(how + ".ends"):
            time.sleep(0.01)
        os._exit(0)
    if how == "exits":
        os._exit(9)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # longer than its timeout

def after(number):
    pass

leaves = app.task(queue="leaves", place="process", max_attempts=1, timeout=2)(leave)
after = app.task(queue="after", place="process", max_attempts=1)(after)
"""


@pytest.mark.parametrize("has_descriptors", [True, False])
@pytest.mark.parametrize(("how", "text"), [("exits", "ended with code 9"), ("killed", "killed by signal 9"), ("late", "longer than 2")])
def test_a_process_that_left_a_child_has_died(
    how: str, text: str, has_descriptors: bool, url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaves_a_child.py").write_text(LEAVES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    sys.modules.pop("leaves_a_child", None)
    module = import_module("leaves_a_child")
    module.app.url = url

    async def story() -> None:
        await module.app.setup()
        await module.leaves.enqueue(how)
        assert (await module.app.drain(processes=1, queues=["leaves"])).dead == 1
        (letter,) = await (await module.app.queue(module.leaves)).dead_letters()
        assert text in letter.error
        await module.after.enqueue(1)
        assert (await module.app.drain(processes=1, queues=["after"])).done == 1

    try:
        run(story())
    finally:
        (tmp_path / f"{how}.ends").touch()


#: In a process for handlers, the import of the module does not end.
IMPORTS = """
import multiprocessing, threading, trunkline

app = trunkline.App()

if multiprocessing.parent_process() is not None:
    open("importing", "w").close()
    threading.Event().wait()

def never(number):
    pass

task = app.task(queue="never", place="process")(never)
"""


def written(name: str, text: str, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module, which the processes for handlers import too, and imports it."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(folder)
    sys.modules.pop(name, None)
    module = import_module(name)
    module.app.url = url
    return module


@pytest.mark.parametrize("verb", ["run", "drain"])
def test_a_stop_ends_the_start_of_processes(verb: str, url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = written("imports_slowly", IMPORTS, url, tmp_path, monkeypatch)

    async def story() -> None:
        await module.app.setup()
        await module.task.enqueue(1)
        working = asyncio.ensure_future(getattr(module.app, verb)(processes=1))
        while not (tmp_path / "importing").exists():
            assert not working.done()
            await asyncio.sleep(0.01)
        module.app.stop()
        assert (await asyncio.wait_for(working, 20)).is_nothing
        (message,) = await (await module.app.queue(module.task)).lease(1)
        assert message.attempts == 1, "no attempt was counted"

    run(story())


#: A handler in a process, which does not end by itself.
WAITS = """
import threading, trunkline

app = trunkline.App()

def waits(number):
    open("begun", "w").close()
    threading.Event().wait()

def waits_for_all(numbers):
    waits(numbers)

task = app.task(queue="waits", place="process", max_attempts=1)(waits)
batches = app.task(queue="batches", place="process", max_attempts=1, batch=2)(waits_for_all)
"""


@pytest.mark.parametrize("name", ["task", "batches"])
def test_a_worker_that_is_cancelled_twice_counts_no_attempt(
    name: str, url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = written("waits_in_process", WAITS, url, tmp_path, monkeypatch)
    task = getattr(module, name)

    async def story() -> None:
        await module.app.setup()
        await task.enqueue(1)
        working = asyncio.ensure_future(module.app.run(processes=1, queues=[task.queue]))
        while not (tmp_path / "begun").exists():
            assert not working.done()
            await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.sleep(0)  # the first cancellation arrives
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        queue = await module.app.queue(task)
        while not (found := await queue.lease(1)):
            assert await queue.dead_letters() == []
            await asyncio.sleep(0.01)
        assert found[0].attempts == 1, "no attempt was counted"

    run(story())


#: A handler in a process notes that it has begun.
NOTES = """
import trunkline

app = trunkline.App()

def notes(number):
    open("begun", "w").close()

task = app.task(queue="notes", place="process", max_attempts=1)(notes)
"""


def test_a_message_cancelled_before_a_process_is_free_is_not_handled(
    url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = written("notes_in_process", NOTES, url, tmp_path, monkeypatch)
    take, cancel = Processes._take, Context.cancel
    waiting, cancelled = asyncio.Event(), asyncio.Event()

    async def taken_late(processes: Processes) -> _Process:
        waiting.set()
        await cancelled.wait()
        return await take(processes)

    def noted(context: Context) -> None:
        cancel(context)
        cancelled.set()

    monkeypatch.setattr(Processes, "_take", taken_late)
    monkeypatch.setattr(Context, "cancel", noted)

    async def story() -> None:
        await module.app.setup()
        id = await module.task.enqueue(1)
        working = asyncio.ensure_future(module.app.run(processes=1))
        await waiting.wait()
        assert await (await module.app.queue(module.task)).cancel(id) == [id]
        await cancelled.wait()
        module.app.stop()
        summary = await working
        assert (summary.lost, summary.done) == (1, 0)
        assert not (tmp_path / "begun").exists()

    run(story())


#: Each process for handlers notes that it has imported the module.
COUNTS = """
import multiprocessing, trunkline

app = trunkline.App()

if multiprocessing.parent_process() is not None:
    with open("imports", "a") as file:
        file.write("imported\\n")

def counts(number):
    pass

task = app.task(queue="counts", place="process", max_attempts=1)(counts)

@app.task(queue="enqueues", max_attempts=1)
async def enqueues(number: int):
    if number:
        await task.enqueue(number)
        await enqueues.enqueue(number - 1)
"""


def test_drain_of_several_queues_starts_its_processes_once(url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = written("counts_in_process", COUNTS, url, tmp_path, monkeypatch)

    async def story() -> None:
        await module.app.setup()
        await module.enqueues.enqueue(5)
        summary = await module.app.drain(processes=1)
        assert (summary.done, summary.retried, summary.dead) == (11, 0, 0)
        assert (tmp_path / "imports").read_text() == "imported\n"

    run(story())


#: A handler in a process, with a time limit.
LIMITED = """
import trunkline

app = trunkline.App()

def limited(number):
    pass

task = app.task(queue="limited", place="process", max_attempts=1, timeout=1)(limited)
"""


def test_a_process_whose_answer_waits_for_the_loop_stays(url: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = written("limited_in_process", LIMITED, url, tmp_path, monkeypatch)
    has_begun, is_blocked, has_answered = threading.Event(), threading.Event(), threading.Event()
    exchange, kill, killed = _Process.exchange, _Process.kill, list[_Process]()

    def exchanged(process: _Process, request: bytes) -> Any:
        has_begun.set()
        is_blocked.wait(20)
        said = exchange(process, request)
        has_answered.set()
        return said

    def noted(process: _Process) -> None:
        killed.append(process)
        kill(process)

    monkeypatch.setattr(_Process, "exchange", exchanged)
    monkeypatch.setattr(_Process, "kill", noted)

    @module.app.task(queue="blocks")
    async def blocks(number: int) -> None:
        await module.task.enqueue(1)
        while not has_begun.is_set():
            await asyncio.sleep(0)
        is_blocked.set()
        began = time.monotonic()
        assert has_answered.wait(20)
        while time.monotonic() < began + 3:  # the time limit passes
            pass

    async def story() -> None:
        await module.app.setup()
        await blocks.enqueue(1)
        working = asyncio.ensure_future(module.app.run(processes=1))
        queues = [await module.app.queue(task) for task in (blocks, module.task)]
        while sum([(await queue.stats()).messages for queue in queues]):
            await asyncio.sleep(0.01)
        assert killed == [], "the handler had ended"
        module.app.stop()
        assert (await working).done == 2

    run(story())


def test_handlers_that_wait_for_a_process_end_with_the_worker(run: Any) -> None:
    async def story() -> None:
        processes = Processes(1, [], Threads(Hanging(1, lambda error: None)))
        waiting = [asyncio.ensure_future(processes._take()) for _ in range(2)]
        await asyncio.sleep(0)
        processes.close()
        waiting.append(asyncio.ensure_future(processes._take()))
        ended, _ = await asyncio.wait(waiting, timeout=20)
        assert [type(one.exception()) for one in ended] == [ProcessesClosed] * 3

    run(story())


ORPHANED = """
import asyncio, os, signal, time, trunkline

app = trunkline.App(os.environ["URL"])

def handle(number):
    with open("noted", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)

task = app.task(queue="orphaned", place="process")(handle)

async def dies():
    await app.setup()
    working = asyncio.ensure_future(app.run(processes=1))
    await task.enqueue(1)
    while not os.path.exists("noted") or not open("noted").read():
        await asyncio.sleep(0.01)
    if not os.fork():
        while not os.path.exists("ends"):
            time.sleep(0.01)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(dies())
"""


def test_a_process_ends_with_its_worker_although_a_fork_of_it_lives(url: str, tmp_path: Path) -> None:
    (tmp_path / "orphaned.py").write_text(ORPHANED)
    try:
        ended = subprocess.run([sys.executable, "orphaned.py"], cwd=tmp_path, env={**os.environ, "URL": url}, timeout=60)
        assert ended.returncode == -signal.SIGKILL
        handler = int((tmp_path / "noted").read_text())
        limit = time.monotonic() + 20
        while _is_running(handler):
            assert time.monotonic() < limit, "the handler's process outlived its worker"
            time.sleep(0.01)
    finally:
        (tmp_path / "ends").touch()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A process that nothing waits for stays as a zombie, in a container without a reaper.
    states = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return not states.stdout.startswith("Z") and states.returncode == 0
