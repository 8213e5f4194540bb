"""The workloads. Each returns its measurements and the number of lost messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Union

from bench.contenders import Contender

Measured = dict[str, Union[int, float]]
Workload = Callable[[Contender, float], Awaitable[Measured]]


def workload(name: str) -> Workload:
    import importlib

    run: Workload = importlib.import_module(f"bench.workloads.{name}").run
    return run
