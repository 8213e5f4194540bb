"""Runs a server as a child process, under another account if this one is root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

STARTING = 60.0
ENDING = 20.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def program(name: str, *folders: str) -> str:
    for folder in folders:
        if folder and (Path(folder) / name).exists():
            return str(Path(folder) / name)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed: see crates/python/bench/README.md")
    return found


def _known(account: str) -> str:
    """Returns the account if it exists, otherwise `nobody`."""
    try:
        return pwd.getpwnam(account).pw_name
    except KeyError:
        return "nobody"


class Server:
    """A server of one program, with a folder that is removed at the end."""

    ends_by = signal.SIGTERM

    def __init__(self, account: str) -> None:
        self.user = _known(account) if os.getuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="trunkline-bench-"))
        if self.user is not None:
            of = pwd.getpwnam(self.user)
            os.chown(self.folder, of.pw_uid, of.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str]) -> None:
        subprocess.run(command, user=self.user, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self, command: Sequence[str], answers: Callable[[], bool], env: Mapping[str, str] | None = None) -> None:
        log = self.folder / "log"
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                command, user=self.user, stdout=said, stderr=said, cwd=self.folder, env={**os.environ, **(env or {})}, process_group=0
            )
        deadline = time.monotonic() + STARTING
        while not answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(self.ends_by)
            try:
                self._process.wait(ENDING)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def listens(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0
