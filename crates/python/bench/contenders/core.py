"""The Rust library by itself, as the reference for the Python package.

Build it with `cargo build --release` in crates/python/bench/core.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import trunkline

from bench.message import Message
from bench.place import Place, here
from bench.workloads import Measured
from bench.workloads.tasks import TASKS

CALLERS = {"alone": 1, "tasks": TASKS}


class Contender:
    needs = "postgres"
    version = f"trunkline {trunkline.__version__}, Rust"
    settings = "defaults, jsonb, tokio's multi-threaded runtime"
    backlog = 0
    uvloop = False
    batches = False

    def measure(self, workload: str, seconds: float) -> Measured:
        target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent / "core/target"))
        program = target / "release/trunkline-python-bench-core"
        command = [str(program), here().postgres, str(CALLERS[workload]), str(seconds)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        measured: Measured = json.loads(ran.stdout)
        return measured

    async def open(self, place: Place) -> None: ...

    async def enqueue(self, message: Message) -> None:
        raise NotImplementedError

    async def enqueue_many(self, messages: Sequence[Message]) -> None:
        raise NotImplementedError

    async def waiting(self) -> int:
        raise NotImplementedError

    async def close(self) -> None: ...

    def workers(self) -> Sequence[Sequence[str]]:
        return []
