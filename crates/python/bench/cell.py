"""Runs one round of a workload with one contender, in its own process, and prints a row.

Usage: `python -m bench.cell CONTENDER WORKLOAD SECONDS`.
"""

from __future__ import annotations

import json
import sys

from bench.contenders import contender
from bench.contenders.core import Contender as Core
from bench.loop import run_of
from bench.memory import peak_mib
from bench.place import here
from bench.workloads import Measured, workload


async def measure(name: str, of: str, seconds: float) -> Measured:
    who = contender(name)
    if isinstance(who, Core):
        return who.measure(of, seconds)
    await who.open(here())
    try:
        measured = await workload(of)(who, seconds)
    finally:
        await who.close()
    return {"peak_mib": peak_mib(), **measured}


def main() -> None:
    name, of, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    measured = run_of(name)(measure(name, of, seconds))
    who = contender(name)
    print(json.dumps({"version": who.version, "settings": who.settings, **measured}))


if __name__ == "__main__":
    main()
