"""The processes of handlers survive a fork of the worker, and are replaced when they die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
