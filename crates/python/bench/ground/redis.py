"""Redis with its default settings: occasional snapshots, and no append-only file. A crash loses the
messages that it acknowledged after the last snapshot."""

from __future__ import annotations

import subprocess

import redis

from bench.ground.process import Server, free_port, listens, program


class Redis(Server):
    def __init__(self) -> None:
        super().__init__("redis")
        redis_server, port = program("redis-server"), free_port()
        self.start(
            [redis_server, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--daemonize", "no"],
            lambda: listens(port),
        )
        self.url = f"redis://127.0.0.1:{port}/0"
        said = subprocess.run([redis_server, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = said.split("v=")[1].split()[0]

    def empty(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()
