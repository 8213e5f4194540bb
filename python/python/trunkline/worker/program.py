"""``trunkline-worker module:app``: works on the queues of an application until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict

from ..errors import TrunklineError
from .app import App
from .find import NoApp, app_of
from .life import Summary
from .logs import begin
from .setup import UnknownQueue
from .supervisor import supervise

_logger = logging.getLogger("trunkline.worker")
#: Set in the processes of a supervisor: its process id.
SUPERVISOR = "TRUNKLINE_WORKER_SUPERVISOR"


def arguments(of: Sequence[str] | None = None) -> argparse.Namespace:
    """What was said on the command line."""
    parser = argparse.ArgumentParser(
        prog="trunkline-worker",
        description="Works on the queues of an application until SIGTERM or SIGINT; then ends in order: what runs may end, the rest is "
        "given back uncharged. A second signal ends it at once.",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="the trunkline.App, as in mails.tasks:app")
    parser.add_argument("--concurrency", type=int, default=100, metavar="N", help="handlers at a time in each process (100)")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="processes; one that dies is replaced (1)")
    parser.add_argument("--queue", action="append", metavar="NAME", help="only this queue; may be said several times")
    parser.add_argument("--wait", default="adaptive", choices=["adaptive", "notify", "poll"], help="how it waits (adaptive)")
    parser.add_argument("--shutdown-after", type=float, default=30, metavar="S", help="seconds that handlers have at the end (30)")
    parser.add_argument("--no-setup", action="store_true", help="do not migrate, nor create queues and schedules; they are made as far as the role may, and what it may not is said")
    parser.add_argument("--drop-schedules", action="store_true", help="drop schedules of these queues that no task declares any more")
    parser.add_argument("--drain", action="store_true", help="end once nothing is due")
    parser.add_argument("--report", action="store_true", help="write every ten seconds what it did, for the console to show")
    parser.add_argument("--reload", action="store_true", help="begin anew when a Python file below this folder changes; for development")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"], help="(info)")
    parser.add_argument("--log-json", action="store_true", help="logs as one JSON object a line")
    return parser.parse_args(of)


async def work(app: App, said: argparse.Namespace) -> Summary:
    """Until a signal."""
    if not said.no_setup:
        await app.setup(queues=said.queue, as_permitted=True, drop_schedules=said.drop_schedules)
    if said.drain:
        return await app.drain(concurrency=said.concurrency, queues=said.queue, reports=said.report)
    running = asyncio.ensure_future(
        app.run(
            concurrency=said.concurrency,
            queues=said.queue,
            wait=said.wait,
            shutdown_after=said.shutdown_after,
            reports=said.report,
        )
    )
    stopping = asyncio.Event()

    def stop(name: str) -> None:
        if stopping.is_set():
            _logger.warning("%s again: ending at once; messages come back when their leases end", name)
            os._exit(1)
        _logger.info("%s: ending in order", name)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number.name)
    orphaned = asyncio.ensure_future(_until_orphaned())
    told = asyncio.ensure_future(stopping.wait())
    _logger.info("working on %s", ", ".join(said.queue or app.tasks), extra={"concurrency": said.concurrency})
    await asyncio.wait([running, orphaned, told], return_when=asyncio.FIRST_COMPLETED)
    app.stop()
    summary = await running
    orphaned.cancel()
    told.cancel()
    return summary


async def _until_orphaned() -> None:
    """Until the supervisor is gone, where there is one."""
    supervisor = os.environ.get(SUPERVISOR)
    while supervisor is None or os.getppid() == int(supervisor):
        await asyncio.sleep(1)
    _logger.warning("the supervisor is gone: ending in order")


def main(of: Sequence[str] | None = None) -> None:
    """The program."""
    said = arguments(of)
    begin(said.log_level, said.log_json)
    if SUPERVISOR not in os.environ and (said.processes > 1 or said.reload):
        given = list(sys.argv[1:] if of is None else of)
        sys.exit(supervise([sys.executable, "-m", "trunkline.worker.program", *given], said.processes, said.reload, SUPERVISOR))
    try:
        summary = asyncio.run(work(app_of(said.app), said))
    except (NoApp, UnknownQueue, TrunklineError) as error:
        _logger.error("%s", error)
        sys.exit(2)
    told = asdict(summary)
    _logger.info("ended: %s", ", ".join(f"{count} {name}" for name, count in told.items() if count) or "nothing to do", extra=told)


if __name__ == "__main__":
    main()
