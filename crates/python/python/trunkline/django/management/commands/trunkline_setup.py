"""`manage.py trunkline_setup` creates the schema, the tasks' queues and their schedules. Run it
where you run `migrate`."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from trunkline.django.place import application


class Command(BaseCommand):
    """The command `trunkline_setup`."""

    help = "Migrates Trunkline's schema, and creates the queues of all tasks. Does nothing if everything exists."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declares `--drop-schedules`."""
        parser.add_argument("--drop-schedules", action="store_true", help="drop schedules of these queues that no task declares any more")

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Runs the setup of the application that the settings name, and prints its queues."""
        app = application()
        asyncio.run(app.setup(drop_schedules=bool(options.get("drop_schedules"))))
        self.stdout.write(f"{len(app.tasks)} queues: {', '.join(sorted(app.tasks))}")
