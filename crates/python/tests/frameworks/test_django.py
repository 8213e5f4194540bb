"""Runs the example for Django in separate processes: its settings, its commands, and with Django's
own client its views and its admin."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from psycopg.conninfo import conninfo_to_dict

import django
from django.conf import settings
from django.db.utils import ConnectionHandler

from .conftest import EXAMPLES, Manage

def program(manage: Manage, text: str) -> str:
    return manage("shell", "--no-imports", "--command", text) if _has_no_imports(manage) else manage("shell", "--command", text)


def _has_no_imports(manage: Manage) -> bool:
    return "--no-imports" in manage("shell", "--help")


VIEW = """
from django.test import Client
client = Client(raise_request_exception=False)
print(client.get("/order?mail=ada@example.org").status_code, client.get("/order?mail=bob@example.org&fail").status_code)
"""


def test_a_view_enqueues_with_its_rows_or_not_at_all(manage, count):
    assert program(manage, VIEW).split()[:2] == ["200", "500"]
    assert count("select from shop_order") == 1
    assert count("select from trunkline.messages('confirmations')") == 1
    assert count("select from trunkline.messages('invoices')") == 1


def test_command_works_with_orm_and_acknowledges_with_effect(manage, count):
    program(manage, VIEW)
    said = manage("trunkline_worker", "--drain")
    assert "2 done" in said or "1 done" in said
    assert count("select from shop_order where is_confirmed") == 1
    assert count("select from shop_order where mail like 'invoice-%'") == 1
    assert count("select from trunkline.messages('confirmations')") == count("select from trunkline.messages('invoices')") == 0


def test_several_processes_are_set_up_from_any_folder(manage, count, tmp_path):
    program(manage, VIEW)
    said = manage("trunkline_worker", "--drain", "--processes", "2", cwd=tmp_path)
    assert "done" in said, said
    assert count("select from shop_order where is_confirmed") == 1


LEFT = """
import threading
from django.core.management import execute_from_command_line
threading.Thread(target=threading.Event().wait).start()
execute_from_command_line(["manage.py", "trunkline_worker", "--drain"])
"""


def test_the_command_ends_though_a_thread_does_not(manage, count):
    program(manage, VIEW)
    assert "still runs: ending without it" in manage("shell", "--command", LEFT)
    assert count("select from shop_order where is_confirmed") == 1


def test_the_program_of_the_package_works_on_the_same_tasks(manage, url, count):
    program(manage, VIEW)
    place = conninfo_to_dict(url)
    names = {"SHOP_HOST": "host", "SHOP_PORT": "port", "SHOP_USER": "user", "SHOP_DATABASE": "dbname"}
    env = {**os.environ, **{name: str(place.get(of) or "") for name, of in names.items()}}
    env |= {"DJANGO_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": os.pathsep.join(sys.path)}
    work = [sys.executable, "-m", "trunkline.worker.program", "shop.tasks:app", "--drain"]
    ran = subprocess.run(work, cwd=EXAMPLES / "django_site", env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert count("select from shop_order where is_confirmed") == 1


DEAD = """
from django.contrib.auth.models import User, Permission
from django.test import Client
from shop.tasks import app, confirm, Confirmation
from django.db import connection
from trunkline.django import dead_letters
from trunkline.transaction import queue
page = "/admin/trunkline/deadletter/"
User.objects.create_superuser("root", password="x")
reader = User.objects.create_user("reader", password="x", is_staff=True)
reader.user_permissions.add(Permission.objects.get(codename="view_deadletter"))
User.objects.create_user("nobody", password="x", is_staff=True)
clients = {}
for name in ("root", "reader", "nobody"):
    clients[name] = Client()
    clients[name].login(username=name, password="x")
text = lambda name: clients[name].get(page + "?queue=confirmations").content.decode()
assert clients["nobody"].get(page).status_code == 403
assert "</strong></a>: 3" in text("reader")
dead_letters.MOST = 2
assert "</strong></a>: more than 2" in text("reader")
assert "no such order" in text("reader") and "Replay" not in text("reader") and "Discard" not in text("reader")
with connection.cursor() as cursor:
    cursor.execute("select id from trunkline.dead_letters('confirmations') order by id")
    ids = [id for (id,) in cursor.fetchall()]
assert len(ids) == 3, ids
act = lambda name, verb, ids: clients[name].post(page + "?queue=confirmations", {"verb": verb, "id": ids})
assert act("reader", "replay", ids).status_code == 403 and act("reader", "discard", ids).status_code == 403
assert act("root", "replay", ids[:1]).status_code == 302
assert act("root", "discard", ids[1:2]).status_code == 302
shown = text("root")
assert "1 of 1 due again" in shown and "1 of 1 discarded" in shown and "Replay" in shown
assert str(ids[2]) in shown and "confirmations" in shown and "&lt;script&gt;" not in shown
with connection.cursor() as cursor:
    long = "jsonb_build_object('order', repeat('p', 100000))"
    cursor.execute(f"update trunkline.dead_confirmations set error = repeat('e', 100000), payload = {long}")
(one,) = dead_letters.page("default", "confirmations", 0)
assert one.error == "e" * 499 + "…" and len(one.payload) == 500 and one.payload.endswith("ppp…"), len(one.payload)
assert one.error in text("root") and "p" * 400 + "…" in text("root")
assert "Trunkline" in clients["root"].get("/admin/").content.decode()
print("shown")
"""


def test_admin_shows_and_moves_dead_letters_as_rights_allow(manage, count):
    enqueue = "from django.db import connection\nfrom shop.tasks import *\nqueue(connection, confirm).enqueue_many([Confirmation(-1)] * 3)"
    program(manage, enqueue)
    manage("trunkline_worker", "--drain")
    assert count("select from trunkline.dead_letters('confirmations')") == 3
    assert "shown" in program(manage, DEAD)
    assert count("select from trunkline.dead_letters('confirmations')") == 1
    assert count("select from trunkline.messages('confirmations')") == 1


def test_a_setting_that_names_nothing_says_so(manage):
    text = "from django.conf import settings\nsettings.TRUNKLINE_APP = 'shop'\nfrom trunkline.django import application\napplication()"
    said = manage("shell", "--command", text, fails=True)
    assert "the setting TRUNKLINE_APP names no application" in said


def test_project_tests_use_the_test_database_alone(manage, count):
    program(manage, VIEW)
    before = count("select from trunkline.messages('confirmations')"), count("select from trunkline.messages('reminders')")
    assert before == (1, 0)
    said = manage("test", "shop", "--noinput")
    assert "Ran 2 tests" in said and "OK" in said and "Destroying test database" in said
    assert (count("select from trunkline.messages('confirmations')"), count("select from trunkline.messages('reminders')")) == before
    assert count("select from shop_order") == 1
    assert count("select from pg_database where datname like 'test_test_%'") == 0


CUT = """
import asyncio
from django.db import connection
from shop.models import Order
from shop.tasks import Confirmation, app, remind
order = Order.objects.create(mail="ada@example.org")

async def cut_between():
    done = 0
    for n in range(10):
        await remind.enqueue(Confirmation(order.pk))
        done += (await app.drain(queues=["reminders"])).done
        # Ends Django's connections, as a restart of the server does.
        from asgiref.sync import sync_to_async
        def cut():
            connection.close()
            with connection.cursor() as cursor:
                ended = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
                cursor.execute(ended + " and query like '%shop_order%' and pid <> pg_backend_pid()")
                cursor.execute("select pg_terminate_backend(pg_backend_pid())")
        try:
            await sync_to_async(cut)()
        except Exception as error:
            assert "terminat" in str(error), error
    print("handled", done)

asyncio.run(cut_between())
"""


def test_an_async_handler_works_again_once_its_connection_was_cut(manage, count):
    assert "handled 10" in program(manage, CUT)
    assert count("select from shop_order where mail = 'reminder'") == 10


DIRECT = """
from django.db import connection, transaction
from shop.models import Order
from shop.tasks import Confirmation, confirm

def backend():
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]

order = Order.objects.create(mail="ada@example.org")
before = backend()
confirm(Confirmation(order.pk))
assert backend() == before, "another connection"
transaction.set_autocommit(False)
Order.objects.create(mail="bob@example.org")
confirm(Confirmation(order.pk))
transaction.commit()
print("committed")
"""


def test_direct_call_keeps_the_connection_of_its_caller(manage, count):
    assert "committed" in program(manage, DIRECT)
    assert count("select from shop_order where is_confirmed") == 1
    assert count("select from shop_order where mail = 'bob@example.org'") == 1


APART = """
import asyncio, functools, time
from django.db import connection
from shop.models import Order
from shop.tasks import app
Order.objects.bulk_create([Order(mail=f"{n}@example.org") for n in range(3)])
reads, ended = asyncio.Event(), asyncio.Event()

@app.task(queue="reads")
async def read(name: str) -> None:
    async for order in Order.objects.aiterator(chunk_size=1):
        reads.set()
        await ended.wait()  # the other handler's connection is closed in the meantime

@app.task(queue="counts")
async def count(name: str) -> None:
    await reads.wait()
    assert await Order.objects.acount() == 3
    ended.set()

def measured(function):
    @functools.wraps(function)
    def within(*arguments):
        return function(*arguments)
    return within

@app.task(queue="wrapped")
@measured
async def wrapped(name: str) -> None:
    assert await Order.objects.acount() == 3

async def both() -> None:
    await app.setup(queues=["reads", "counts", "wrapped"])
    await read.enqueue("a")
    await count.enqueue("b")
    print("handled", (await app.drain(queues=["reads", "counts"])).done)
    await wrapped.enqueue("c")
    await app.drain(queues=["wrapped"])

asyncio.run(both())
left = "select count(*) from pg_stat_activity where query like '%shop_order%' and pid <> pg_backend_pid() and datname = current_database()"
until = time.monotonic() + 20
def is_open():
    with connection.cursor() as cursor:
        cursor.execute(left)
        return cursor.fetchone() != (0,)
while is_open():
    assert time.monotonic() < until, "a handler left its connection open"
print("none left")
"""


def test_async_handlers_have_connections_of_their_own(manage):
    said = program(manage, APART)
    assert "handled 2" in said and "none left" in said


@pytest.fixture
def url_of(monkeypatch):
    """Returns a function that makes the connection string of a database with the given settings."""
    if not settings.configured:
        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}})
        django.setup()

    def of(**named):
        said = {"ENGINE": "django.db.backends.postgresql", **named}
        monkeypatch.setattr("django.db.connections", ConnectionHandler({"default": said}))
        from trunkline.django import url

        return url()

    return of


def test_options_of_a_database_are_said_to_the_library(url_of):
    options = {"sslmode": "verify-full", "sslrootcert": "/ca.pem", "application_name": "my shop's", "connect_timeout": 5, "keepalives": True}
    said = conninfo_to_dict(url_of(NAME="shop", HOST="h", PORT=5433, USER="u", PASSWORD="p'\\ w", OPTIONS=options))
    assert said == {
        "dbname": "shop", "host": "h", "port": "5433", "user": "u", "password": "p'\\ w", "sslmode": "verify-full", "sslrootcert": "/ca.pem",
        "application_name": "my shop's", "connect_timeout": "5", "keepalives": "1",
    }  # fmt: skip
    assert url_of(OPTIONS={"service": "shop"}) == "service='shop'"
    assert url_of(NAME=None, OPTIONS={"service": "shop"}) == "dbname='postgres'"
    both = conninfo_to_dict(url_of(NAME="shop", OPTIONS={"options": "-c work_mem=8MB", "assume_role": "a role"}))
    assert both["options"] == "-c work_mem=8MB -c role=a\\ role"
    pooled = {"pool": True, "isolation_level": 2, "server_side_binding": True, "gssencmode": "disable", "prepare_threshold": 3}
    assert url_of(NAME="shop", OPTIONS=pooled) == "dbname='shop'"


def test_impossible_connection_options_are_refused_by_name(url_of):
    with pytest.raises(ValueError, match="neither a NAME nor OPTIONS"):
        url_of(OPTIONS={})
    with pytest.raises(ValueError, match=r"OPTIONS\['sslpassword'\] .* is a list"):
        url_of(NAME="shop", OPTIONS={"sslpassword": ["x"]})
    with pytest.raises(ValueError, match="Trunkline needs PostgreSQL"):
        url_of(ENGINE="django.db.backends.sqlite3", NAME="shop")
    import trunkline.sync

    with pytest.raises(trunkline.TrunklineError, match="sslcert"):
        trunkline.sync.Db.connect(url_of(NAME="shop", OPTIONS={"sslcert": "/x"}))
    with pytest.raises(trunkline.TrunklineError, match="gssencmode=require is not supported"):
        trunkline.sync.Db.connect(url_of(NAME="shop", OPTIONS={"gssencmode": "require"}))


def test_a_tls_option_is_not_dropped(url_of, url):
    """The library refuses a server without TLS, as Django does."""
    import trunkline.sync

    place = conninfo_to_dict(url)
    names = {"HOST": "127.0.0.1", "PORT": place["port"], "USER": place["user"], "NAME": place["dbname"]}
    with pytest.raises(trunkline.TrunklineError):
        trunkline.sync.Db.connect(url_of(**names, OPTIONS={"sslmode": "require"}))


def test_an_assumed_role_is_assumed(url_of, url, count):
    import psycopg
    import trunkline.sync

    place = conninfo_to_dict(url)
    names = {"HOST": place["host"], "PORT": place["port"], "USER": place["user"], "NAME": place["dbname"]}
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute('create role "shop owner"')
        try:
            sql.execute(f'grant create on database "{place["dbname"]}" to "shop owner"')
            trunkline.sync.Db.connect(url_of(**names, OPTIONS={"assume_role": "shop owner"})).migrate()
            owned = "select from pg_namespace where nspname = 'trunkline' and pg_get_userbyid(nspowner) = 'shop owner'"
            assert count(owned) == 1
        finally:
            sql.execute('drop owned by "shop owner" cascade')
            sql.execute('drop role "shop owner"')


def test_an_engine_of_another_name_counts_by_what_it_is(url_of, monkeypatch):
    import sys
    import types

    import django.db.backends.postgresql.base as base

    monkeypatch.setitem(sys.modules, "geo", types.ModuleType("geo"))
    monkeypatch.setitem(sys.modules, "geo.base", base)
    sys.modules["geo"].base = base
    assert url_of(ENGINE="geo", NAME="shop") == "dbname='shop'"
