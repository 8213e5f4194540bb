"""Calls trunkline.enqueue through psycopg, for the benchmark. Each process is one caller."""

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent))
import load_protocol


class Caller:
    version = f"psycopg {version('psycopg')}"
    seed_batch = 1

    def __init__(self, options: load_protocol.Options) -> None:
        self.options = options

    def settings(self) -> str:
        return "a blocking connection in autocommit, prepare_threshold 0"

    async def open(self) -> None:
        self.connection = psycopg.connect(self.options.url, autocommit=True, prepare_threshold=0)

    async def send(self, message: load_protocol.Message) -> None:
        # The call blocks the event loop, so the other tasks of the protocol run before it.
        await asyncio.sleep(0)
        self.connection.execute("select trunkline.enqueue(%s, %s)", ("bench", message.text()))

    async def close(self) -> None:
        self.connection.close()


if __name__ == "__main__":
    load_protocol.run(Caller)
