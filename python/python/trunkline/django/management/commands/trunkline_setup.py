"""`manage.py trunkline_setup`: the schema, the queues of the tasks and their schedules. Run it where you run `migrate`."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand

from trunkline.django.place import application


class Command(BaseCommand):
    help = "Migrates Trunkline's schema, and creates the queues of all tasks. Does nothing where all is there."

    def handle(self, *arguments: Any, **options: Any) -> None:
        app = application()
        asyncio.run(app.setup())
        self.stdout.write(f"{len(app.tasks)} queues: {', '.join(sorted(app.tasks))}")
