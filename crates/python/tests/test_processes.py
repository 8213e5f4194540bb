"""The processes of handlers survive a fork of the worker, and are replaced when they die."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from trunkline.worker.processes import _Process

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


def test_a_message_fails_once_several_processes_died_while_idle(
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
            assert (await module.app.drain(processes=2)).dead == 1
        (letter,) = await (await module.app.queue(module.task)).dead_letters()
        assert "died while it was idle" in letter.error and "code 9" in letter.error
        warnings = [one.getMessage() for one in caplog.records if "an idle process" in one.getMessage()]
        assert warnings == ["an idle process for handlers ended with code 9: a new process starts"] * 5

    run(story())
