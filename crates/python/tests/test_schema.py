"""A transaction's messages go to the schema to which the library itself would connect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest
import trunkline
from psycopg.conninfo import conninfo_to_dict
from trunkline import transaction
from trunkline.sync import Db

SERVICES = "[shop]\ndbname=shop\nschema=of_shop\n[other]\ndbname=shop\n"
#: Addresses, each with its schema.
ADDRESSES = {
    "postgres:///app": "trunkline",
    "postgres:///app?schema=mine": "mine",
    "postgres:///app?schema=%6dine": "mine",
    "postgres:///app?sche%6da=mine": "mine",
    "postgres://user:a%20schema=wrong@host/app": "trunkline",
    "dbname=app schema = 'mine'": "mine",
    "schema=m\\ine": "mine",
    "password='a schema=wrong' dbname=app": "trunkline",
    "application_name=\"schema=wrong\"": "trunkline",
    "service=shop": "of_shop",
    "service=shop schema=mine": "mine",
    "postgres:///?service=shop": "of_shop",
    "service=other": "trunkline",
}


@pytest.fixture(autouse=True)
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "services"
    file.write_text(SERVICES)
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.delenv("TRUNKLINE_SCHEMA", raising=False)
    return file


@pytest.mark.parametrize("address", ADDRESSES)
def test_schema_before_the_connection_is_that_of_the_address(address: str) -> None:
    assert trunkline.App(address).schema == ADDRESSES[address]


def test_schema_of_the_environment_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_SCHEMA", "of_all")
    assert trunkline.App("").schema == "of_all"
    assert trunkline.App("service=shop").schema == "of_shop"
    monkeypatch.setenv("PGSERVICE", "shop")
    assert trunkline.App("").schema == "of_shop"


def test_an_address_without_sense_is_refused() -> None:
    with pytest.raises(trunkline.TrunklineError, match="schema cannot be named"):
        trunkline.App("schema=Wrong!").schema
    with pytest.raises(trunkline.TrunklineError, match="nowhere"):
        trunkline.App("service=nowhere").schema


@pytest.mark.parametrize("by", ["task", "name"])
def test_transactions_reach_the_queue_of_the_service(by: str, url: str, services: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = "\n".join(f"{name}={value}" for name, value in conninfo_to_dict(url).items())
    services.write_text(f"[shop]\n{place}\nschema=of_shop\n")
    for address in (url, "service=shop"):
        other = Db.connect(address)
        other.migrate()
        other.create_queue("mails", str)
    app = trunkline.App("service=shop")
    task = app.task(queue="mails", type=str)(print)
    with psycopg.connect(url) as connection:
        monkeypatch.setenv("PGSERVICE", "shop")  # libpq itself refuses a service with a schema
        queue = transaction.queue(connection, task) if by == "task" else transaction.queue(connection, "mails", str)
        queue.enqueue("hello")
    counts = [Db.connect(address).queue("mails", str).stats().messages for address in (url + " schema=trunkline", "service=shop")]
    assert counts == [0, 1]
    assert asyncio.run(app.drain()).done == 1
