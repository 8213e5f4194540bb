"""``trunkline-worker module:app`` works on the queues of an application until it receives a
signal."""

from __future__ import annotations

import argparse
import asyncio
import atexit
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from functools import partial
from types import FrameType
from typing import Any

from .. import os_threads
from ..errors import TrunklineError
from ..times import bounded
from . import forks
from .app import App
from .ending import log
from .find import NoApp, app_of
from .hanging import TooManyHang
from .logs import begin
from .processes import ProcessFailed
from .setup import UnknownQueue
from .summary import Summary
from .supervisor import NO_APP, NOT_IMPORTED, supervise

_logger = logging.getLogger("trunkline.worker")
#: An environment variable, which a supervisor sets for its processes: the supervisor's process id.
SUPERVISOR = "TRUNKLINE_WORKER_SUPERVISOR"


def arguments(of: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="trunkline-worker",
        description="Works on the queues of an application until SIGTERM or SIGINT, then shuts down gracefully: running handlers may finish, "
        "and other messages are released without counting an attempt. A second signal, a second or more after the first, ends it immediately.",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="the trunkline.App, as in mails.tasks:app; without :APP, the name is app")
    add_options(parser)
    return parser.parse_args(of)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a worker to a parser."""
    parser.add_argument("--concurrency", type=_count, default=100, metavar="N", help="maximum number of concurrent handlers in each process (100)")
    parser.add_argument("--processes", type=_count, default=1, metavar="N", help="number of processes; a process that dies is replaced (1)")
    parser.add_argument("--handler-processes", type=_count, metavar="N", help="maximum number of concurrent handlers that run in processes of their own, for each process of the worker (one per processor)")
    parser.add_argument("--queue", action="append", metavar="NAME", help="work only on this queue; can be repeated")
    parser.add_argument("--wait", default="adaptive", choices=["adaptive", "notify", "poll"], help="how the worker waits for messages (adaptive)")
    parser.add_argument("--shutdown-after", type=_seconds, default=30, metavar="S", help="seconds for which running handlers may continue at shutdown (30)")
    parser.add_argument("--no-setup", action="store_true", help="do not migrate the schema, and do not create queues and schedules; by default each step that the role may not do is logged and skipped")
    parser.add_argument("--drop-schedules", action="store_true", help="drop schedules of these queues that no task declares any more")
    parser.add_argument("--drain", action="store_true", help="end once no message is due; each queue then has the handlers of --concurrency for itself")
    parser.add_argument("--report", action="store_true", help="write a report every ten seconds, which the console shows")
    parser.add_argument("--reload", action="store_true", help="restart when a Python file below this folder changes; for development")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"], help="minimum level of the log (info)")
    parser.add_argument("--log-json", action="store_true", help="log one JSON object per line")


def _count(said: str) -> int:
    """Parses a number of at least one."""
    if not said.isascii() or not said.isdigit() or not 0 < int(said) < 2**31:
        raise argparse.ArgumentTypeError(f"{said!r} is not a number from 1 to 2,147,483,647")
    return int(said)


def _seconds(said: str) -> float:
    """Parses a duration in seconds."""
    try:
        return bounded(float(said))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{said!r} is not a number of seconds, which must be at least zero") from None


#: Signals within this number of seconds count as one signal. A terminal, a service manager or a
#: supervisor may send the same signal to a process twice.
_ONE = 1.0
#: The number of seconds that the program waits at its end for threads and tasks that a handler
#: started.
_LAST = 5.0


async def work(app: App, said: argparse.Namespace, supervisor: int | None) -> Summary:
    """Works until a signal arrives, or with ``--drain`` until nothing is due."""
    ending = _Ending(supervisor is not None)
    running = asyncio.ensure_future(_work(app, said))
    orphaned = asyncio.ensure_future(_until_orphaned(supervisor))
    told = asyncio.ensure_future(ending.begun.wait())
    is_cancelled = False
    try:
        await asyncio.wait([running, orphaned, told], return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:  # a handler did this; shut down gracefully anyway
        is_cancelled = True
    app.stop()
    if not running.done() and not app.is_running:
        running.cancel()  # the setup is still running
    try:
        summary = await running
        if is_cancelled:
            raise asyncio.CancelledError("the worker was cancelled")
        return summary
    except asyncio.CancelledError:
        if is_cancelled:
            raise
        return Summary()
    finally:
        orphaned.cancel()
        told.cancel()


async def _work(app: App, said: argparse.Namespace) -> Summary:
    if not said.no_setup:
        await app.setup(queues=said.queue, as_permitted=True, drop_schedules=said.drop_schedules)
    _logger.info("working on %s", ", ".join(said.queue or app.tasks), extra={"concurrency": said.concurrency})
    if said.drain:
        return await app.drain(
            concurrency=said.concurrency,
            queues=said.queue,
            shutdown_after=said.shutdown_after,
            processes=said.handler_processes,
            reports=said.report,
        )
    return await app.run(
        concurrency=said.concurrency,
        queues=said.queue,
        wait=said.wait,
        shutdown_after=said.shutdown_after,
        processes=said.handler_processes,
        reports=said.report,
    )


class _Ending:
    """Handles signals: the first starts the graceful shutdown, a later one ends the process
    immediately."""

    def __init__(self, is_supervised: bool) -> None:
        self.begun = asyncio.Event()
        self._is_supervised = is_supervised
        self._since: float | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            # `add_signal_handler` wakes the event loop and sets `begun`. `_came` does the work. It
            # is a plain Python signal handler, which runs even while a task handler blocks the
            # loop.
            before = signal.getsignal(number)
            loop.add_signal_handler(number, self.begun.set)
            forks.handle(number, self._came, before)

    def _came(self, number: int, _: FrameType | None) -> None:
        now, name = time.monotonic(), signal.Signals(number).name
        if self._since is None:
            self._since = now
            log(logging.INFO, "%s: shutting down gracefully", name)
        elif now - self._since >= _ONE and not self._is_supervised:  # its supervisor kills it
            log(logging.WARNING, "%s again: ending immediately; messages return when their leases end", name)
            os._exit(1)


def ends_before_work() -> None:
    """Ends the process at a SIGTERM until the work begins. The first process of a container has no
    default for this signal, so it would be lost while the application is imported."""

    def end(_: int, __: FrameType | None) -> None:
        log(logging.INFO, "SIGTERM: ending before the work begins")
        os._exit(0)

    forks.handle(signal.SIGTERM, end)


async def _until_orphaned(supervisor: int | None) -> None:
    """Waits until the supervisor is gone. Without a supervisor, waits indefinitely."""
    while supervisor is None or os.getppid() == supervisor:
        await asyncio.sleep(1)
    _logger.warning("the supervisor is gone: shutting down gracefully")


def main(of: Sequence[str] | None = None, command: Sequence[str] | None = None, logs: bool = True) -> None:
    """Runs the program. ``command`` is the command that starts it again, for ``--processes``. If
    ``logs`` is true, sends the logs to standard error."""
    said = arguments(of)
    if logs:
        begin(said.log_level, said.log_json)
    # Programs that a handler starts must not inherit this variable.
    supervisor = os.environ.pop(SUPERVISOR, None)
    if supervisor is None and (said.processes > 1 or said.reload):
        given = list(sys.argv[1:] if of is None else of)
        command = command or [sys.executable, "-m", "trunkline.worker.program", *given]
        sys.exit(supervise(command, said.processes, said.reload, SUPERVISOR, said.drain))
    ends_before_work()
    try:
        app = app_of(said.app)
    except NoApp as error:
        _logger.error("%s", error)
        sys.exit(NO_APP if supervisor else 2)
    except TrunklineError as error:
        _logger.error("%s", error)
        sys.exit(2)
    except Exception:
        traceback.print_exc()
        sys.exit(NOT_IMPORTED if supervisor else 1)
    try:
        summary = _run(work(app, said, None if supervisor is None else int(supervisor)))
    except (UnknownQueue, TrunklineError, ProcessFailed) as error:
        _logger.error("%s", error)
        sys.exit(2)
    except TooManyHang:
        sys.exit(1)  # it was logged
    told = asdict(summary)
    _logger.info("ended: %s", ", ".join(f"{count} {name}" for name, count in told.items() if count) or "nothing to do", extra=told)


def _run(work: Coroutine[Any, Any, Summary]) -> Summary:
    """Runs the worker like ``asyncio.run``, with two differences, because handlers may misbehave.
    If a handler raises an error out of the loop or stops the loop, the worker shuts down
    gracefully. At the end, this function does not wait for threads of the loop's executor, and it
    waits only for a limited time for tasks that do not end."""
    loop = asyncio.new_event_loop()
    worker = loop.create_task(work)
    try:
        return loop.run_until_complete(worker)
    finally:
        worker.cancel()
        while not worker.done():
            try:
                loop.run_until_complete(asyncio.wait([worker]))
            except BaseException as error:
                log(logging.ERROR, "error while the worker ends: %s", error)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            _, left = loop.run_until_complete(asyncio.wait(left, timeout=_LAST))
            if left:
                _logger.warning("%d tasks still run although they were cancelled: ending without them", len(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def console(program: Callable[[], object] = main) -> None:
    """Runs the program as a shell starts it. The process ends even if a handler's thread is still
    running. A pool's idle threads end by themselves while the interpreter exits."""
    code: object = 1
    try:
        program()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    # The interpreter joins the threads first, and then calls the functions of `atexit`, the last
    # one first.
    joining = os_threads.original("_thread", "allocate_lock")()
    joining.acquire()
    atexit.register(joining.release)
    os_threads.start(partial(_end_late, code, joining), "trunkline-exit")
    sys.exit(code)  # type: ignore[arg-type]  # the code of the program, unchanged


def _end_late(code: object, joining: threading.Lock) -> None:
    """Ends the process after some seconds, if the interpreter still waits for other threads."""
    # Without other threads, the caller of `console` is still cleaning up.
    left: list[threading.Thread] = []
    while not left:
        if joining.acquire(timeout=_LAST):
            return
        left = [thread for thread in threading.enumerate() if not (thread is threading.main_thread() or thread.daemon or os_threads.is_own(thread))]
    for thread in left:
        _logger.warning("thread %s still runs: ending without it", thread.name)
    logging.shutdown()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    console()
