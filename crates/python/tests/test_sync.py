"""Tests the verbs of ``trunkline.sync``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import trunkline
from trunkline.sync import Db
from trunkline.testing.time import shift_sync


def test_threads_share_rows_and_nothing_is_lost(url: str) -> None:
    db = Db.connect(url)
    assert db.migrate() > 0 and db.migrate() == 0
    db.create_queue("mails", str)
    mails = db.queue("mails", str)
    with ThreadPoolExecutor(32) as threads:
        ids = list(threads.map(mails.enqueue, [f"mail {nr}" for nr in range(320)]))
    assert len(set(ids)) == 320
    got: list[str] = []
    for message in mails.consumer(prefetch=50):
        got.append(message.payload)
        mails.ack(message)
        if len(got) == 320:
            break
    assert len(set(got)) == 320 and mails.stats().messages == 0


def test_every_verb_is_there(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", int, uniqueness=True, max_attempts=1)
    mails = db.queue("mails", int)
    id = mails.draft(1).after(hours=1).unique("k").enqueue()
    assert not mails.draft(2).unique("k").enqueue().is_new
    assert shift_sync(mails, 3600) == 1
    (mail,) = mails.lease(1, for_=5)
    mails.extend(mail, 10)
    mails.release(mail)
    mails.retry(mails.lease(1), error="no")
    (letter,) = mails.dead_letters()
    assert (letter.id, letter.error) == (id, "no") and mails.replay("all") == 1
    mails.archive(mails.lease(1))
    assert [one.payload for one in mails.archived()] == [1] and mails.find(id).state == "archived"  # type: ignore[union-attr]
    assert mails.take(1) == [] and mails.consumer().take(1, within=0.01) == []
    with pytest.raises(trunkline.NoQueue):
        db.queue("nothing")


def test_other_threads_run_while_one_waits(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", int)
    mails = db.queue("mails", int)
    came: list[int] = []
    waiter = threading.Thread(target=lambda: came.extend(m.payload for m in mails.consumer().take(1)))
    waiter.start()
    mails.enqueue(5)
    waiter.join(30)
    assert came == [5]


WAITS = """
import signal, sys, trunkline.sync
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
mails = trunkline.sync.Db.connect(sys.argv[1]).queue("mails", int)
try:
    print("waits", flush=True)
    mails.consumer().take(1)
except KeyboardInterrupt:
    print("interrupted", mails.stats().messages, flush=True)
"""


def test_ctrl_c_ends_a_wait_and_takes_nothing(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", int)
    waits = subprocess.Popen([sys.executable, "-c", WAITS, url], stdout=subprocess.PIPE, text=True)
    assert waits.stdout is not None and waits.stdout.readline() == "waits\n"
    waits.send_signal(signal.SIGINT)
    assert waits.communicate(timeout=30)[0] == "interrupted 0\n"
    assert waits.returncode == 0


def test_a_fork_is_told_to_connect_by_itself(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", int)
    mails = db.queue("mails", int)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                mails.enqueue(1)
                told = "nothing"
            except RuntimeError as error:
                told = str(error)
            own = Db.connect(url).queue("mails", int)
            own.enqueue(2)
            os.write(writing, told.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert "connect after the fork" in said.read().replace("call Db.connect", "connect")
    os.waitpid(child, 0)
    assert [mail.payload for mail in mails.take(5)] == [2]


ENDS = """
import asyncio, sys, trunkline
async def main():
    queue = await (await trunkline.Db.connect(sys.argv[1])).queue("mails", int)
    tasks = [asyncio.ensure_future(queue.enqueue(n)) for n in range(100)] + [asyncio.ensure_future(queue.consumer().lease(1))]
    await asyncio.sleep(0)
    {how}
asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["return", "raise SystemExit(0)", "asyncio.get_running_loop().stop()", "import os; os._exit(0)"])
def test_an_interpreter_ends_with_calls_under_way(url: str, how: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("mails", int)
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", ENDS.replace("{how}", how), url], capture_output=True, text=True, timeout=60)
    assert ended.returncode == (1 if "stop" in how else 0), ended.stderr
    assert "panicked" not in ended.stderr and "Fatal" not in ended.stderr, ended.stderr
    assert time.monotonic() - began < 55


def test_program_ends_in_order_while_its_threads_wait(url: str) -> None:
    program = """
import sys, threading, time
from trunkline.sync import Db
db = Db.connect(sys.argv[1])
db.migrate()
db.create_queue("idle", int)
idle = db.queue("idle", int)
def wait():
    while True:
        idle.consumer().lease(10, within=0.001)
for _ in range(8):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, "")


WAITS_AT_EXIT = """
import atexit, sys, threading

def join():
    may_end.set()
    threads = [thread for thread in threading.enumerate() if thread.name == "waits"]
    for thread in threads:
        thread.join()
    print(len(threads), "ended", flush=True)

atexit.register(join)  # before the import, so it is called after the handlers of the package
from trunkline.sync import Db
idle = Db.connect(sys.argv[1]).queue("idle", int)
begun, may_end = threading.Barrier(9), threading.Event()

def wait():
    consumer = idle.consumer()
    begun.wait()
    while not may_end.is_set():
        consumer.lease(1, within=0.2)

for _ in range(8):
    threading.Thread(target=wait, name="waits", daemon=True).start()
begun.wait()
"""


def test_exit_handler_can_wait_for_threads_within_calls(url: str) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("idle", int)
    ended = subprocess.run([sys.executable, "-c", WAITS_AT_EXIT, url], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "8 ended\n", "")
