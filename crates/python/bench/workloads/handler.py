"""Measures workers on a backlog, from the first handled message to the last. Their handler only
counts."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from bench.contenders import Contender
from bench.message import message
from bench.place import here
from bench.tally import VARIABLE, Tally
from bench.workloads import Measured

STARTING, PATIENCE = 60.0, 30.0
BATCH = 1_000


async def run(contender: Contender, seconds: float) -> Measured:
    count = int(contender.backlog * seconds / 4)
    for first in range(0, count, BATCH):
        await contender.enqueue_many([message(n) for n in range(first, min(count, first + BATCH))])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tally"
        tally = Tally(path, count)
        env = {**os.environ, **here().env(), VARIABLE: str(path)}
        log = Path(folder) / "log"
        with log.open("wb") as said:
            workers = [
                subprocess.Popen(list(command), env=env, stdout=said, stderr=said, process_group=0) for command in contender.workers()
            ]
        try:
            began = _wait(tally, 1, STARTING, log)
            ended = _wait(tally, count, PATIENCE, log)
        finally:
            _end(workers)
        return {
            "messages": count,
            "seconds": ended - began,
            "messages_per_s": tally.handled() / (ended - began),
            "lost": tally.missing(),
            "doubled": tally.doubled(),
        }


def _wait(tally: Tally, wanted: int, patience: float, log: Path) -> float:
    """Waits until `wanted` messages have been handled, or no message has been handled for
    `patience` seconds. Returns the time of the last handled message."""
    best, since = tally.handled(), time.perf_counter()
    while best < wanted:
        time.sleep(0.002)
        now = tally.handled()
        if now > best:
            best, since = now, time.perf_counter()
        elif time.perf_counter() > since + patience:
            print(log.read_text(errors="replace")[-3000:], flush=True)
            return since
    return time.perf_counter()


def _end(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        os.killpg(worker.pid, signal.SIGTERM)
    for worker in workers:
        try:
            worker.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    # Kills children that outlived their worker.
    for worker in workers:
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
