"""Reads this process's memory from /proc; Linux only."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> float:
    return _field("VmHWM")


def now_mib() -> float:
    return _field("VmRSS")


def _field(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {name}")
