"""Tests the example for Flask with its own client, and with threads such as those of its
servers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

MAIL = {"to": "ada@example.org", "text": "hello"}


@pytest.fixture
def module(url, example, monkeypatch):
    place = conninfo_to_dict(url)
    at = {"query": {"host": place["host"], "port": str(place.get("port", 5432))}}
    address = URL.create("postgresql+psycopg", username=place.get("user"), database=place.get("dbname"), **at)
    monkeypatch.setenv("SQLALCHEMY_URL", address.render_as_string(hide_password=False))
    module = example("flask_app")
    asyncio.run(module.app.setup())
    yield module
    module.engine.dispose()


def test_a_request_enqueues_and_a_worker_sends(module):
    client = module.api.test_client()
    answered = client.post("/mails", json=MAIL)
    assert answered.status_code == 202
    id = answered.get_json()["id"]
    assert client.get(f"/mails/{id}").get_json() == {"state": "due", "attempt": 0, "error": None}
    assert asyncio.run(module.app.drain()).done == 1
    assert module.sent == ["ada@example.org"]
    assert client.get(f"/mails/{id}").status_code == 404


def test_a_request_enqueues_with_its_rows_or_not_at_all(module, count, monkeypatch):
    client = module.api.test_client()
    assert client.post("/users", json=MAIL).status_code == 201
    kept = module.transaction.SyncQueue.enqueue

    def broken(self, message):
        kept(self, message)
        raise psycopg.OperationalError("the program fails after the enqueue")

    monkeypatch.setattr(module.transaction.SyncQueue, "enqueue", broken)
    assert client.post("/users", json=MAIL).status_code == 500
    assert (count("select from users"), count("select from trunkline.messages('mails')")) == (1, 1)


def test_many_threads_use_one_handle_and_lose_nothing(module, count):
    def request(n: int) -> int:
        return int(module.api.test_client().post("/mails", json={"to": str(n), "text": ""}).get_json()["id"])

    with ThreadPoolExecutor(16) as threads:
        ids = list(threads.map(request, range(200)))
    assert len(set(ids)) == 200
    assert count("select from trunkline.messages('mails')") == 200
