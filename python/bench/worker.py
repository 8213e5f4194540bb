"""The worker process of a contender whose library has a coroutine for it: `python -m bench.worker NAME`."""

from __future__ import annotations

import asyncio
import importlib
import sys

import uvloop

from bench.contenders import MODULES, contender
from bench.place import here
from bench.tally import Tally


def main(name: str) -> None:
    module = importlib.import_module(f"bench.contenders.{MODULES[name]}")
    run = uvloop.run if contender(name).uvloop else asyncio.run
    run(module.work(here(), Tally.of_the_worker()))


if __name__ == "__main__":
    main(sys.argv[1])
