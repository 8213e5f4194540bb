"""PostgreSQL with its default durability. Clients connect through its socket."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess

import psycopg

from bench.ground.process import Server, free_port, program


class Postgres(Server):
    """A private server with the `postgres` of --pg-bin, otherwise of the last folder in
    TRUNKLINE_PG_BINS, otherwise of PATH."""

    #: After SIGINT the server does not wait for sessions.
    ends_by = signal.SIGINT

    def __init__(self, folder: str = "") -> None:
        super().__init__("postgres")
        bins = os.environ.get("TRUNKLINE_PG_BINS", "").split(":")[-1]
        data, self.port = self.folder / "data", free_port()
        postgres = program("postgres", folder, bins)
        self.run([program("initdb", folder, bins), "-D", str(data), "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale", "C"])
        settings = [f"port={self.port}", f"unix_socket_directories={self.folder}", "listen_addresses=", "max_connections=300"]
        command = [postgres, "-D", str(data), *(part for setting in settings for part in ("-c", setting))]
        self.start(command, self._answers)
        self.version = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
        self._names = (f"cell{number}" for number in itertools.count())

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str) -> str:
        return f"postgresql://bench@/{database}?host={self.folder}&port={self.port}"

    def database(self) -> str:
        """Creates an empty database, and returns its name. Forces a checkpoint, so that earlier
        writes do not disturb the measurement."""
        name = next(self._names)
        with psycopg.connect(self.url("postgres"), autocommit=True) as admin:
            admin.execute(f"create database {name}")
            admin.execute("checkpoint")
        return name

    def drop(self, name: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)")
