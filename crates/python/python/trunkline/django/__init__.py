"""Trunkline in a Django project.

    INSTALLED_APPS = [..., "trunkline.django"]
    TRUNKLINE_APP = "shop.tasks:app"

`manage.py trunkline_setup` creates the schema and the queues, `manage.py trunkline_worker` runs a
worker, and the admin shows the dead letters. `trunkline.transaction.queue(connection, task)`
enqueues in a view's transaction; :func:`enqueue_on_commit` enqueues after its commit.
"""

from trunkline.django.app import App
from trunkline.django.on_commit import enqueue_on_commit
from trunkline.django.place import application, url

__all__ = ["App", "application", "enqueue_on_commit", "url"]
