"""Tests the library's events in Python's ``logging``."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from trunkline import _trunkline, logs
from trunkline.sync import Db, Queue

SOON = 30.0


def until(what: Callable[[], Any]) -> None:
    limit = time.monotonic() + SOON
    while not what():
        assert time.monotonic() < limit, "the condition did not become true in time"
        time.sleep(0.01)


class Seen(logging.Handler):
    """Keeps each record, and passes it to a function."""

    def __init__(self, do: Callable[[logging.LogRecord], object] = lambda record: None) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.do = do

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.do(record)


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Yields the logger of the tests' events without settings, and restores it afterwards."""
    logger = logging.getLogger("trunkline.test")
    kept = logger.handlers[:], logger.level, logger.propagate
    yield logger
    logger.handlers[:], logger.level, logger.propagate = kept
    logging.disable(logging.NOTSET)
    logger.setLevel(kept[1])
    logs.begin()


def lose_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")


def test_lost_connection_is_a_warning_of_its_module(url: str, caplog: pytest.LogCaptureFixture) -> None:
    db = Db.connect(url)
    db.migrate()
    began = time.time()
    lose_connections(url)

    def lost() -> list[logging.LogRecord]:
        return [one for one in caplog.records if one.getMessage().startswith("connection to the database lost")]

    until(lost)
    record = lost()[0]
    assert (record.name, record.levelname, record.levelno) == ("trunkline.postgres.wire.connection", "WARNING", logging.WARNING)
    assert f"error={record.error}" in record.getMessage()  # type: ignore[attr-defined]
    assert began - 1 < record.created <= time.time() and record.threadName == "trunkline-logs"


def test_level_holds_at_next_connect_or_within_a_second(url: str, caplog: pytest.LogCaptureFixture) -> None:
    def connected() -> list[logging.LogRecord]:
        return [one for one in caplog.records if one.getMessage().startswith("connected")]

    Db.connect(url).migrate()
    with caplog.at_level(logging.DEBUG, "trunkline.postgres"):
        Db.connect(url).migrate()
        until(connected)
        assert isinstance(connected()[0].process_id, int)  # type: ignore[attr-defined]
    with caplog.at_level(5, "trunkline.test"):
        until(lambda: (_trunkline.test_logs(1, False), [one for one in caplog.records if one.levelname == "TRACE"])[1])


@pytest.mark.parametrize("off", ["level", "disable", "disabled"])
def test_no_event_is_made_that_no_logger_wants(logger: logging.Logger, off: str) -> None:
    seen = Seen()
    logger.addHandler(seen)
    if off == "level":
        logger.setLevel(logging.ERROR)
    elif off == "disable":
        logging.disable(logging.WARNING)
    else:
        logger.disabled = True
    try:
        logs.begin()
        began = time.process_time()
        _trunkline.test_logs(1_000_000, True)
        took = time.process_time() - began
    finally:
        logger.disabled = False
    # An event that no logger wants costs about 2 ns, a thousandth of a logged line.
    assert took < 0.25, f"{took:.3f} s for a million events"
    logging.disable(logging.NOTSET)
    logger.setLevel(logging.WARNING)
    logs.begin()
    _trunkline.test_logs(1, True)
    until(lambda: seen.records)
    assert [one.nr for one in seen.records] == [0]  # type: ignore[attr-defined]


def test_events_lost_to_slow_handler_are_counted(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    may_go_on = False
    seen = Seen(lambda _: until(lambda: may_go_on))
    logger.addHandler(seen)
    logger.propagate = False
    logs.begin()
    count = 200_000
    _trunkline.test_logs(count, True)
    may_go_on = True

    def dropped() -> list[int]:
        return [one.dropped for one in caplog.records if one.name == "trunkline" and hasattr(one, "dropped")]  # type: ignore[attr-defined]

    until(lambda: len(seen.records) + sum(dropped()) == count)
    assert 1_000 < len(seen.records) < count
    numbers = [one.nr for one in seen.records]  # type: ignore[attr-defined]
    assert numbers == list(range(numbers[-1] + 1)), "the first events arrive, in order"


def test_a_handler_may_call_the_library_and_may_raise(url: str, logger: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    db = Db.connect(url)
    db.migrate()
    db.create_queue("told", str)
    queue: Queue[str] = db.queue("told", str)

    def send(record: logging.LogRecord) -> None:
        queue.enqueue(record.getMessage())
        if record.getMessage() == "own":
            _trunkline.test_logs(1, True)
        if "nr=7" in record.getMessage():
            raise SystemExit("a handler that is broken")

    seen = Seen(send)
    logger.addHandler(seen)
    logger.propagate = False
    for _ in range(3):
        _trunkline.test_logs(100, True)
        # Holds the handler's lock, for which the thread `trunkline-logs` waits.
        logger.warning("own")
    until(lambda: len(seen.records) == 306)
    until(lambda: queue.stats().messages == 306)
    assert "a handler that is broken" in capsys.readouterr().err


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SOON, env={**os.environ, "PYTHONFAULTHANDLER": "1"})


BEGIN = """
import logging, os, sys, time
from trunkline import _trunkline
from trunkline.sync import Db
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
db = Db.connect(sys.argv[1])
"""


def test_events_before_the_exit_are_logged(url: str) -> None:
    for _ in range(5):
        ended = run(BEGIN + "_trunkline.test_logs(1000, True)", url)
        assert ended.returncode == 0, ended.stderr
        lines = ended.stderr.splitlines()
        assert len(lines) == 1000 and lines[-1] == "trunkline.test WARNING an event nr=999 name=a test"


def test_program_ends_whatever_handlers_and_library_do(url: str) -> None:
    # Sleeps in `handle` and not in `emit`, which holds a lock that `logging` needs at exit.
    sleeps = "logging.getLogger().handlers[0].handle = lambda record: time.sleep(60)\n"
    ended = run(BEGIN + sleeps + "_trunkline.test_logs(10, True)", url)
    assert (ended.returncode, ended.stderr) == (0, "")
    # A thread that returns from a call after the interpreter has ended.
    tells = "import threading\nthreading.Thread(target=lambda: [_trunkline.test_logs(10, True) for _ in iter(int, 1)], daemon=True).start()\n"
    for _ in range(5):
        ended = run(BEGIN + "logging.getLogger('trunkline.test').disabled = True\n" + tells + "time.sleep(0.2)", url)
        # On a busy machine the thread is faster than the reader of events, which logs that it
        # dropped events.
        lines = [line for line in ended.stderr.splitlines() if "events of the library were dropped" not in line]
        assert (ended.returncode, lines) == (0, [])


def test_a_fork_has_logs_of_its_own(url: str) -> None:
    program = """
_trunkline.test_logs(1, True)
time.sleep(0.2)
if (child := os.fork()) == 0:
    db = Db.connect(sys.argv[1])
    _trunkline.test_logs(2, True)
else:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = run(BEGIN + program, url)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("trunkline.test WARNING") == 3, ended.stderr
