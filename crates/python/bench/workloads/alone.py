"""Measures one caller, which awaits each message before it sends the next one."""

from __future__ import annotations

from bench.contenders import Contender
from bench.workloads import Measured, tasks


async def run(contender: Contender, seconds: float) -> Measured:
    return await tasks.run(contender, seconds, tasks=1)
