"""A forked child of a handler ends when the handler returns, and takes nothing from the worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trunkline
from trunkline.sync import Db

from forked import in_fork

PROGRAM = """
import asyncio, os, sys, trunkline

app = trunkline.App(os.environ["URL"])
ONCE = trunkline.Fixed(0, max_attempts=1)
ends = os.environ["ENDS"]

def noted(number):
    with open("noted", "a") as file:
        file.write(f"{number} {os.getpid()}\\n")

def forked(number):
    if number or os.fork():
        return os.wait()[1] if not number else None
    if ends == "exits":
        sys.exit(0)
    if ends == "raises":
        raise ValueError("the child's")
    return "child"

@app.task(retry=ONCE, max_batch=1)
async def loops(number: int):
    if forked(number) != "child":
        noted(number)
        await asyncio.sleep(0)

@app.task(retry=ONCE, max_batch=1)
def threads(number: int):
    if forked(number) != "child":
        noted(number)

@app.task(retry=ONCE, max_batch=1, place="process")
def processes(number: int):
    if forked(number) != "child":
        noted(number)
    if number == 3:
        raise ValueError("three")
"""
COUNT = 8


@pytest.mark.parametrize("ends", ["exits", "raises", "returns"])
@pytest.mark.parametrize("name", ["loops", "threads", "processes"])
def test_a_child_of_a_handler_ends_alone(name: str, ends: str, tmp_path: Path, url: str) -> None:
    (tmp_path / "tasks.py").write_text(PROGRAM)
    db = Db.connect(url)
    db.migrate()
    db.create_queue(name, int, max_batch=1)
    queue = db.queue(name, int)
    ids = queue.enqueue_many(range(COUNT))
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", "--drain", "--queue", name, "--handler-processes", "1", "--concurrency", "1"]
    # The child inherits the pipes, so a surviving child would block this call.
    worker = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "URL": url, "ENDS": ends}, capture_output=True, text=True, timeout=60, check=False
    )
    assert worker.returncode == 0, worker.stderr
    noted = [line.split() for line in (tmp_path / "noted").read_text().splitlines()]
    assert sorted(int(number) for number, _ in noted) == list(range(COUNT)), "each ran once"
    assert len({process for _, process in noted}) == 1, "all in the same process"
    dead = [letter.id for letter in queue.dead_letters()]
    assert dead == ([ids[3]] if name == "processes" else []), "only the message whose handler raised an error failed"
    assert queue.stats().messages == 0


#: Handlers that end their forks by SIGTERM: a pool, and a child that may not have begun.
ENDED = """
import multiprocessing, os, signal, time, trunkline

app = trunkline.App(os.environ["URL"])
fork = multiprocessing.get_context("fork")

def square(number):
    return number * number

def forked(number):
    with fork.Pool(2) as pool:
        assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    for pause in (0, 0, 0.01):
        child = fork.Process(target=time.sleep, args=(3600,))
        child.start()
        time.sleep(pause)
        child.terminate()
        child.join(10)
        assert child.exitcode == -signal.SIGTERM, child.exitcode

@app.task(max_batch=1, max_attempts=1)
async def loops(number: int):
    forked(number)

@app.task(max_batch=1, max_attempts=1)
def threads(number: int):
    forked(number)

@app.task(max_batch=1, max_attempts=1, place="process")
def processes(number: int):
    forked(number)
"""


@pytest.mark.parametrize("name", ["loops", "threads", "processes"])
def test_signal_to_a_fork_of_a_handler_ends_that_fork_alone(name: str, tmp_path: Path, url: str) -> None:
    (tmp_path / "tasks.py").write_text(ENDED)
    db = Db.connect(url)
    db.migrate()
    db.create_queue(name, int, max_batch=1, max_attempts=1)
    queue = db.queue(name, int)
    queue.enqueue_many(range(COUNT))
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", "--drain", "--queue", name, "--concurrency", "2", "--handler-processes", "2"]
    with open(tmp_path / "log", "w") as log:
        worker = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "URL": url}, stderr=log, start_new_session=True)
        try:
            code = worker.wait(60)
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
    told = (tmp_path / "log").read_text()
    assert code == 0 and "SIGTERM" not in told, told
    assert queue.dead_letters() == []
    assert queue.stats().messages == 0, told


@pytest.mark.parametrize("verb", ["extend", "release", "ends_elsewhere"])
def test_child_of_a_handler_cannot_end_its_lease(verb: str, url: str, run: Any) -> None:
    app, said = trunkline.App(url), list[str]()

    @app.task(queue="forks", retry=trunkline.Fixed(0, max_attempts=1))
    def forks(number: int, context: trunkline.Context) -> None:
        call, arguments = getattr(context, f"{verb}_in_thread"), [5] if verb == "extend" else []
        said.append(in_fork(lambda: call(*arguments)))
        context.extend_in_thread(30)

    async def story() -> None:
        await app.setup()
        await forks.enqueue(1)
        assert (await app.drain()).done == 1

    run(story())
    (text,) = said
    assert "of which this process is a fork" in text
