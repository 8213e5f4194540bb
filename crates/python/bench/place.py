"""The addresses of a cell's servers, passed to its processes in environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    postgres: str = ""
    redis: str = ""
    rabbitmq: str = ""

    def env(self) -> Mapping[str, str]:
        return {"BENCH_POSTGRES": self.postgres, "BENCH_REDIS": self.redis, "BENCH_RABBITMQ": self.rabbitmq}


def here() -> Place:
    of = os.environ
    return Place(of.get("BENCH_POSTGRES", ""), of.get("BENCH_REDIS", ""), of.get("BENCH_RABBITMQ", ""))
