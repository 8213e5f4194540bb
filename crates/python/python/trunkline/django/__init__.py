"""Trunkline in a Django project.

    INSTALLED_APPS = [..., "trunkline.django"]
    TRUNKLINE_APP = "shop.tasks:app"

`manage.py trunkline_setup` makes the schema and the queues, `manage.py trunkline_worker` works, and the admin shows the dead letters.
`trunkline.transaction.queue(connection, task)` enqueues with the rows of a view; :func:`enqueue_on_commit` after their commit.
"""

from trunkline.django.app import App
from trunkline.django.on_commit import enqueue_on_commit
from trunkline.django.place import application, url

__all__ = ["App", "application", "enqueue_on_commit", "url"]
