"""Runs a worker process of a contender whose library works in a coroutine.

Usage: `python -m bench.worker NAME`.
"""

from __future__ import annotations

import importlib
import sys

from bench.contenders import MODULES
from bench.loop import run_of
from bench.place import here
from bench.tally import Tally


def main(name: str) -> None:
    module = importlib.import_module(f"bench.contenders.{MODULES[name]}")
    run_of(name)(module.work(here(), Tally.of_the_worker()))


if __name__ == "__main__":
    main(sys.argv[1])
