"""Tests the examples for FastAPI with its own client. Requests go through the whole application,
including the lifespan."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from fastapi.testclient import TestClient

from .conftest import EXAMPLES

MAIL = {"to": "ada@example.org", "text": "hello"}
WORKER = [sys.executable, "-m", "trunkline.worker.program"]


def test_a_request_enqueues_and_a_worker_sends(example):
    module = example("fastapi_app")
    with TestClient(module.api) as client:
        answered = client.post("/mails", json=MAIL)
        assert answered.status_code == 202
        id = answered.json()["id"]
        assert client.get(f"/mails/{id}").json() == {"state": "due", "attempt": 0, "error": None}
        assert client.post("/mails", json={"to": "ada"}).status_code == 422
    assert asyncio.run(module.app.drain()).done == 1
    assert module.sent == ["ada@example.org"]
    with TestClient(module.api) as client:
        assert client.get(f"/mails/{id}").status_code == 404


def test_a_request_enqueues_with_its_rows_or_not_at_all(example, count):
    module = example("fastapi_app")
    with TestClient(module.api, raise_server_exceptions=False) as client:
        assert client.post("/users", json=MAIL).status_code == 201
        assert (count("select from users"), count("select from trunkline.messages('mails')")) == (1, 1)

        class Broken(Exception):
            pass

        async def broken(self, message):
            await kept(self, message)
            raise Broken

        kept = module.transaction.AsyncQueue.enqueue
        module.transaction.AsyncQueue.enqueue = broken
        try:
            assert client.post("/users", json=MAIL).status_code == 500
        finally:
            module.transaction.AsyncQueue.enqueue = kept
        assert (count("select from users"), count("select from trunkline.messages('mails')")) == (1, 1)


def test_the_worker_can_live_in_the_lifespan(example, count):
    module = example("fastapi_one_process")
    with TestClient(module.api) as client:
        assert client.post("/greetings/ada").status_code == 202
        assert client.get("/greetings").json() == "ada"
    assert count("select from trunkline.messages('greetings')") == 0


def test_uvicorn_serves_and_the_program_works(url, tmp_path):
    """Starts both programs as a reader would. SIGTERM ends the server, and the worker drains."""
    env = {**os.environ, "DATABASE_URL": url, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path])}
    serve = [sys.executable, "-m", "uvicorn", "fastapi_app:api", "--port", "0", "--host", "127.0.0.1"]
    with subprocess.Popen(serve, cwd=EXAMPLES, env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = next(line for line in server.stderr if "running on" in line)
            address = re.search(r"http://[\d.:]+", said)
            assert address is not None
            for n in range(20):
                assert httpx.post(f"{address[0]}/mails", json={**MAIL, "text": str(n)}).status_code == 202
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)
    work = [*WORKER, "fastapi_app:app", "--drain"]
    ran = subprocess.run(work, cwd=EXAMPLES, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and "20 done" in ran.stderr + ran.stdout, ran.stderr


@pytest.fixture(autouse=True)
def _no_database_of_the_machine(monkeypatch):
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
