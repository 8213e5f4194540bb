"""Django's other databases, and queues whose names look like a schema's."""

from __future__ import annotations

from .conftest import Manage
from .test_django import program

OTHER = """
import asyncio, json
from django.db import connections, transaction
from trunkline.django import App, enqueue_on_commit

connections.settings["other"] = dict(connections.settings["default"])
app = App("other")
written = []

class Counting:
    column = "jsonb"
    def encode(self, payload):
        written.append(payload)
        return json.dumps(payload).encode()
    def decode(self, payload):
        return json.loads(payload)

@app.task(queue="others", type=Counting())
def other(payload): ...

asyncio.run(app.setup())
queue = app.queue_sync(other)
payload = {"a": 1}
with transaction.atomic(using="other"):
    enqueue_on_commit(other, payload)
    payload["a"] = 2
    assert queue.stats().messages == 0, "not before the commit"
assert [message.payload for message in queue.take(2)] == [{"a": 1}] and len(written) == 1
try:
    with transaction.atomic(using="other"):
        enqueue_on_commit(other, queue.draft(payload).after(minutes=1))
        raise ValueError
except ValueError:
    assert queue.stats().messages == 0
enqueue_on_commit(other, queue.draft(payload).after(minutes=1))
assert queue.stats().delayed == 1
with transaction.atomic():
    enqueue_on_commit(other, payload, "default")
    assert queue.stats().messages == 1
assert queue.stats().messages == 2
print("on commit")
"""


def test_messages_wait_for_the_commit_of_their_own_database(manage: Manage) -> None:
    assert "on commit" in program(manage, OTHER)


NAMED = """
import asyncio
from django.contrib.auth.models import User
from django.test import Client
import shop.tasks
import trunkline
from shop.tasks import app

@app.task(queue="trunkline.mails", max_attempts=1, retry=trunkline.Fixed(0))
def mail(number: int):
    raise ValueError("no such address")

asyncio.run(app.setup())
app.queue_sync(mail).enqueue_many([1, 2])
assert asyncio.run(app.drain(queues=["trunkline.mails"])).dead == 2
User.objects.create_superuser("root", password="x")
client = Client()
client.login(username="root", password="x")
page = "/admin/trunkline/deadletter/?queue=trunkline.mails"
shown = client.get(page)
assert shown.status_code == 200 and "</strong></a>: 2" in shown.content.decode(), shown.content
ids = [letter.id for letter in app.queue_sync(mail).dead_letters()]
assert client.post(page, {"verb": "discard", "id": ids[:1]}).status_code == 302
assert client.post(page, {"verb": "replay", "id": ids[1:]}).status_code == 302
assert app.queue_sync(mail).dead_letters() == [] and app.queue_sync(mail).stats().due == 1
print("shown")
"""


def test_dead_letters_of_a_queue_named_like_the_schema_are_shown(manage: Manage) -> None:
    assert "shown" in program(manage, NAMED)


def test_the_command_explains_each_option_of_the_worker(manage: Manage) -> None:
    said = manage("trunkline_worker", "--help")
    for option in ("--concurrency N", "--handler-processes N", "--wait {adaptive,notify,poll}", "--reload", "--log-level"):
        assert option in said, said
    assert "write a report every ten seconds" in said
    assert "invalid choice: 'often'" in manage("trunkline_worker", "--wait", "often", fails=True)
    assert "is not a number from 1" in manage("trunkline_worker", "--concurrency", "0", fails=True)
