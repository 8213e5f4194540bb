"""Starts ``trunkline-worker`` and the demo as a user would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from trunkline.sync import Db, Queue
from trunkline.worker.supervisor import _changes  # pyright: ignore[reportPrivateUsage]

PROGRAM = """
import os, time, trunkline

app = trunkline.App(os.environ["URL"])

@app.task(max_batch=1, lease=2)
async def note(number: int):
    with open("notes", "a") as notes:
        notes.write(f"{number} {os.getpid()} VERSION\\n")
    if number == 13 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), 9)
"""


class Story:
    """A folder with a program, and its worker."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.workers: list[subprocess.Popen[str]] = []
        self.write("one")
        db = Db.connect(url)
        db.migrate()
        db.create_queue("note", int, max_batch=1)
        self.queue: Queue[int] = db.queue("note", int)

    def write(self, version: str) -> None:
        (self.folder / "tasks.py").write_text(PROGRAM.replace("VERSION", version))

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", "--log-json", *options]
        # Starts a separate session, so that all its processes can be killed.
        worker = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, "URL": self.url}, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.workers.append(worker)
        return worker

    def notes(self) -> list[list[str]]:
        file = self.folder / "notes"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def until(self, what: Any, seconds: float = 60) -> None:
        limit = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < limit, self.notes()
            time.sleep(0.02)


@pytest.fixture
def story(tmp_path: Path, url: str) -> Iterator[Story]:
    story = Story(tmp_path, url)
    yield story
    for worker in story.workers:  # still running only if the test failed
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def _end(worker: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]]]:
    worker.send_signal(signal.SIGTERM)
    try:
        told = worker.communicate(timeout=60)[1]
    finally:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
    return worker.returncode, [json.loads(line) for line in told.splitlines() if line.startswith("{")]


def test_program_works_until_sigterm_and_reports_as_json(story: Story) -> None:
    worker = story.start()
    story.queue.enqueue_many(range(5))
    story.until(lambda: len(story.notes()) == 5)
    code, logs = _end(worker)
    assert code == 0
    assert logs[-1]["done"] == 5 and logs[-1]["message"] == "ended: 5 done"
    assert {"time", "level", "logger"} <= logs[0].keys()
    assert story.queue.stats().messages == 0


POOL = """
import asyncio, atexit, os, trunkline
from concurrent.futures import ThreadPoolExecutor

app = trunkline.App(os.environ["URL"])
pool = ThreadPoolExecutor(1)
atexit.register(print, "flushed")

@app.task(max_batch=1, lease=2)
async def note(number: int):
    await asyncio.get_running_loop().run_in_executor(pool, int)
"""


def test_idle_threads_of_a_pool_do_not_delay_the_exit(story: Story) -> None:
    (story.folder / "tasks.py").write_text(POOL)
    story.queue.enqueue(1)
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", "--drain"]
    ran = subprocess.run(command, cwd=story.folder, env={**os.environ, "URL": story.url}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stdout == "flushed\n" and "still runs" not in ran.stderr, ran


THREADS = """
import os, threading, time, trunkline

app = trunkline.App(os.environ["URL"])

def write():
    threading.main_thread().join()  # the worker has ended
    time.sleep(0.3)
    with open("written", "w") as file:
        file.write("written")

@app.task(max_batch=1, lease=2)
def note(number: int):
    threading.Thread(target=write).start()
"""


def test_threads_that_a_handler_started_end_before_the_program(story: Story) -> None:
    (story.folder / "tasks.py").write_text(THREADS)
    story.queue.enqueue(1)
    worker = story.start("--drain")
    _, errors = worker.communicate(timeout=60)
    assert worker.returncode == 0, errors
    assert (story.folder / "written").read_text() == "written"


SAYS = """
import logging, os, trunkline

app = trunkline.App(os.environ["URL"])
logger = logging.getLogger("tasks")

def note(number: int):
    logger.info("handled %d", number)
    logger.debug("not at this level")

task = app.task(max_batch=1, lease=2, place="process")(note)
"""


def test_handlers_in_processes_log_as_the_program_does(story: Story) -> None:
    (story.folder / "tasks.py").write_text(SAYS)
    story.queue.enqueue(7)
    worker = story.start("--drain", "--handler-processes", "1")
    _, errors = worker.communicate(timeout=60)
    assert worker.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    said = [(line["level"], line["message"]) for line in lines if line["logger"] == "tasks"]
    assert said == [("info", "handled 7")]


def test_asked_to_it_reports(story: Story) -> None:
    worker = story.start("--report")
    story.queue.enqueue_many(range(5))
    story.until(lambda: len(story.notes()) == 5)
    assert _end(worker)[0] == 0
    with psycopg.connect(story.url) as sql:
        told = sql.execute("select process, sum(handled), bool_or(ended) from trunkline.worker where queue = 'note' group by 1").fetchall()
    assert told == [(worker.pid, 5, True)]


def test_killed_process_is_replaced_and_its_message_comes_back(story: Story) -> None:
    worker = story.start("--processes", "2")
    story.queue.enqueue_many(range(20))
    story.until(lambda: story.queue.stats().messages == 0)
    code, _ = _end(worker)
    assert code == 0
    assert {int(number) for number, _, _ in story.notes()} == set(range(20))
    assert [number for number, _, _ in story.notes()].count("13") == 2


def test_programs_that_handlers_start_have_no_supervisor(story: Story) -> None:
    story.write("{os.environ.get('TRUNKLINE_WORKER_SUPERVISOR')}")
    worker = story.start("--processes", "2")
    story.queue.enqueue(1)
    story.until(lambda: len(story.notes()) == 1)
    _end(worker)
    assert story.notes()[0][2] == "None"


def test_it_begins_anew_when_the_program_changes(story: Story) -> None:
    worker = story.start("--reload")
    story.queue.enqueue(1)
    story.until(lambda: len(story.notes()) == 1)
    story.write("two")
    story.until(lambda: (story.queue.enqueue(2), story.notes()[-1][2] == "two")[1])
    _end(worker)


def test_missing_app_is_said_in_a_sentence(tmp_path: Path) -> None:
    def said(target: str) -> str:
        command = [sys.executable, "-m", "trunkline.worker.program", target]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 2, ended
        return ended.stderr

    (tmp_path / "there.py").write_text("x = 1\n")
    assert "there is no module 'nowhere'" in said("nowhere:app") and "Traceback" not in said("nowhere:app")
    assert "has no 'app'" in said("there")
    assert "is a int, not a trunkline.App" in said("there:x")


@pytest.mark.parametrize("options", [[], ["--drain"]])
def test_processes_without_an_app_end(options: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline.worker.program", "nowhere:app", "--processes", "2", *options]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and "there is no module 'nowhere'" in ended.stderr, ended


def test_processes_that_cannot_begin_to_drain_end(story: Story) -> None:
    worker = story.start("--processes", "2", "--drain", "--queue", "nowhere")
    told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 2 and "nowhere" in told, told


def test_processes_that_fail_at_import_end_a_drain(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("import os\nos.environ['MISSING']\n")
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", "--processes", "2", "--drain"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and ended.stderr.count("KeyError: 'MISSING'") == 2, ended


#: The first process drains, the other fails at its start.
HALF = """
import os, sys
try:
    os.mkdir("drained")
except FileExistsError:
    sys.exit(2)
"""


def test_a_drain_ends_if_only_some_processes_can_begin(tmp_path: Path) -> None:
    program = f"from trunkline.worker import supervisor; print(supervisor.supervise({[sys.executable, '-c', HALF]}, 2, False, 'MARK', True))"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "2\n", ended


def test_a_drain_ends_if_the_application_takes_long_to_fail(tmp_path: Path) -> None:
    # Any time is long.
    program = "from trunkline.worker import supervisor; supervisor._SHORT = 0.0; "
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app"]
    (tmp_path / "tasks.py").write_text("import os\nos.environ['MISSING']\n")
    program += f"print(supervisor.supervise({command}, 2, False, 'TRUNKLINE_WORKER_SUPERVISOR', True))"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "1\n" and ended.stderr.count("KeyError: 'MISSING'") == 2, ended


def test_sigterm_while_the_application_is_imported_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("print('begun', flush=True)\ninput()\n")
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "begun\n"
        worker.send_signal(signal.SIGTERM)
        told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0 and "ending before the work begins" in told, told


#: The system refuses the second and the third process.
REFUSES = """
import logging, subprocess, sys
from trunkline.worker import supervisor

starts = []

class Refusing(subprocess.Popen):
    def __init__(self, *arguments, **options):
        starts.append(self)
        if len(starts) in (2, 3):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        super().__init__(*arguments, **options)

logging.basicConfig()
subprocess.Popen = Refusing
code = supervisor.supervise([sys.executable, "-c", "pass"], 2, False, "MARK", True)
print("code", code, "after", len(starts))
"""


def test_a_process_that_the_system_refuses_is_started_later(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", REFUSES], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "code 0 after 4\n", ended
    assert ended.stderr.count("Resource temporarily unavailable") == 2, ended


def test_the_demo_counts_and_loses_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "trunkline", "demo", "--messages", "5000", "--json"], capture_output=True, text=True, check=True
    )
    told = json.loads(ended.stdout)
    assert (told["messages"], told["lost"], told["twice"], told["left"]) == (5000, 0, 0, 0)


def test_processes_that_drain_end_once_nothing_is_due(story: Story) -> None:
    story.queue.enqueue_many(range(12))
    worker = story.start("--drain", "--processes", "2")
    told = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0, told
    assert sorted(int(number) for number, *_ in story.notes()) == list(range(12))


@pytest.mark.parametrize(
    "option",
    ["--concurrency=0", "--concurrency=-1", "--concurrency=many", "--processes=0", "--handler-processes=-1", "--shutdown-after=nan", "--shutdown-after=-1"],
)
def test_options_out_of_bounds_are_refused(option: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline.worker.program", "tasks:app", option]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert option.partition("=")[0] in refused.stderr and "Traceback" not in refused.stderr


def test_folders_that_vanish_end_no_look_at_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.py").touch()
    changes = _changes(tmp_path)
    assert next(changes) is False
    scandir = os.scandir

    def vanishing(folder: str) -> Any:
        if str(folder) != str(tmp_path) and (tmp_path / "b").exists():  # the names are read
            (tmp_path / "b" / "one.py").unlink()
            (tmp_path / "b").rmdir()
        return scandir(folder)

    assert next(changes) is False
    monkeypatch.setattr(os, "scandir", vanishing)
    assert next(changes) is True
