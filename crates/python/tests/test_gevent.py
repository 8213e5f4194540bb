"""The package works in a program whose threads gevent has replaced by greenlets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trunkline.sync import Db

PATCH = "import gevent.monkey\ngevent.monkey.patch_all()\n"
#: gevent may come before the package or, as in a worker, after it.
ORDERS = {"first": PATCH + "import trunkline.sync\n", "last": "import trunkline.sync\n" + PATCH}

PROGRAM = """
import gevent, logging, sys, trunkline
from trunkline import _trunkline

logging.basicConfig(format="%(threadName)s %(name)s %(message)s")
db = trunkline.sync.Db.connect(sys.argv[1])
db.migrate()
db.create_queue("mails", int)
mails = db.queue("mails", int)

# A greenlet waits for a message that another greenlet enqueues.
waiting = gevent.spawn(lambda: mails.consumer().lease(1))
gevent.sleep(0)
mails.enqueue(5)
(message,) = waiting.get(timeout=30)
mails.ack(message)

# A timeout of gevent ends a wait, and the message stays.
with gevent.Timeout(0.1, False):
    mails.consumer().lease(1)
    raise AssertionError("the wait did not end")

app = trunkline.App(sys.argv[1])
task = app.task(queue="mails", type=int)(lambda number: None)
ids = [each.get(timeout=30) for each in [gevent.spawn(app.queue_sync(task).enqueue, n) for n in range(10)]]
assert len(set(ids)) == 10
_trunkline.test_logs(2, True)
print(message.payload, mails.stats().messages)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_greenlets_do_not_stop_each_other(order: str, url: str) -> None:
    ended = subprocess.run([sys.executable, "-c", ORDERS[order] + PROGRAM, url], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "5 10\n"), ended.stderr
    lines = [line for line in ended.stderr.splitlines() if "trunkline.test" in line]
    assert lines == [f"trunkline-logs trunkline.test an event nr={n} name=a test" for n in range(2)], ended.stderr


TASKS = (
    PATCH
    + """
import os, time, trunkline

app = trunkline.App(os.environ["URL"])

@app.task(queue="loops")
async def loops(number: int):
    pass

@app.task(queue="threads", timeout=60)
def threads(number: int):
    time.sleep(0.01)

@app.task(queue="processes", place="process")
def processes(number: int):
    time.sleep(0.01)
"""
)


def test_a_worker_handles_tasks_of_a_module_that_patches(url: str, tmp_path: Path) -> None:
    (tmp_path / "patched_tasks.py").write_text(TASKS)
    db = Db.connect(url)
    db.migrate()
    for name in ("loops", "threads", "processes"):
        db.create_queue(name, int)
        db.queue(name, int).enqueue_many(range(5))
    command = [sys.executable, "-m", "trunkline.worker.program", "patched_tasks:app", "--drain", "--handler-processes", "1"]
    ended = subprocess.run(command, cwd=tmp_path, env={**os.environ, "URL": url}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "15 done" in ended.stderr
