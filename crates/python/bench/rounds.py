"""Runs the cells of a run in turns. Every contender runs one round before any contender runs its
next round, so that other load on the machine affects all of them alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.contenders import contender, takes_part
from bench.place import Place

if TYPE_CHECKING:
    from bench.ground.postgres import Postgres
    from bench.ground.rabbitmq import Rabbitmq
    from bench.ground.redis import Redis

CELL_SECONDS = 1_800.0


@dataclass(frozen=True)
class Row:
    workload: str
    contender: str
    version: str
    settings: str
    rounds: list[Mapping[str, float]]


@dataclass
class Ground:
    """The servers that the contenders of a run need."""

    postgres: Postgres | None = None
    redis: Redis | None = None
    rabbitmq: Rabbitmq | None = None

    def versions(self) -> Mapping[str, str]:
        servers = {"PostgreSQL": self.postgres, "Redis": self.redis, "RabbitMQ": self.rabbitmq}
        return {name: server.version for name, server in servers.items() if server is not None}


Kept = Callable[[Mapping[str, str], list[Row]], None]


def run(contenders: Sequence[str], workloads: Sequence[str], rounds: int, seconds: float, pg_bin: str, keep: Kept) -> None:
    """Calls `keep` with the servers' versions and all rows so far after each workload, so that an
    interrupted run keeps its rows."""
    with ExitStack() as stack:
        needs = {contender(name).needs for name in contenders}
        ground = _begun(stack, needs, pg_bin)
        rows: dict[tuple[str, str], Row] = {}
        for workload in workloads:
            who = [name for name in contenders if takes_part(name, workload)]
            for number in range(rounds):
                for name in who:
                    said = cell(ground, name, workload, seconds)
                    print(f"{workload} {name} {number + 1}/{rounds}: {_short(said)}", file=sys.stderr, flush=True)
                    row = rows.setdefault((workload, name), Row(workload, name, said.pop("version"), said.pop("settings"), []))
                    row.rounds.append({measure: value for measure, value in said.items() if measure not in ("version", "settings")})
            keep(ground.versions(), list(rows.values()))


def _begun(stack: ExitStack, needs: set[str], pg_bin: str) -> Ground:
    """Starts the servers that are needed. For other servers no client has to be installed."""
    ground = Ground()
    if "postgres" in needs:
        from bench.ground.postgres import Postgres

        stack.enter_context(started := Postgres(pg_bin))
        ground.postgres = started
    if "redis" in needs:
        from bench.ground.redis import Redis

        stack.enter_context(kept := Redis())
        ground.redis = kept
    if "rabbitmq" in needs:
        from bench.ground.rabbitmq import Rabbitmq

        stack.enter_context(broker := Rabbitmq())
        ground.rabbitmq = broker
    return ground


def cell(ground: Ground, name: str, workload: str, seconds: float) -> dict[str, str]:
    for place in _place(ground, contender(name).needs):
        command = [sys.executable, "-m", "bench.cell", name, workload, str(seconds)]
        ran = subprocess.run(command, env={**os.environ, **place.env()}, capture_output=True, text=True, timeout=CELL_SECONDS)
        if ran.returncode != 0:
            raise RuntimeError(f"{name} {workload}: {ran.stdout}{ran.stderr}")
        said: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
        return said
    raise AssertionError("no server was started for the contender")


def _place(ground: Ground, needs: str) -> Iterator[Place]:
    """Yields an empty place: a database, which is dropped after the cell, or an emptied broker."""
    if needs == "postgres" and ground.postgres is not None:
        name = ground.postgres.database()
        try:
            yield Place(postgres=ground.postgres.url(name))
        finally:
            ground.postgres.drop(name)
    elif needs == "redis" and ground.redis is not None:
        ground.redis.empty()
        yield Place(redis=ground.redis.url)
    elif ground.rabbitmq is not None:
        ground.rabbitmq.empty("bench", "bench.DQ", "bench.XQ")
        yield Place(rabbitmq=ground.rabbitmq.url)


def _short(said: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value:.6g}" for key, value in said.items() if isinstance(value, (int, float)))


__all__ = ["Ground", "Kept", "Row", "run"]
