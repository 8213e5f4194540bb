"""`manage.py trunkline_worker` does the same as `trunkline-worker`, for the application that the
settings name."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from trunkline.django.place import application
from trunkline.worker import program

#: Options of `trunkline-worker` that have a value; they are passed on unchanged.
VALUES = ("concurrency", "processes", "handler_processes", "wait", "shutdown_after", "log_level")
FLAGS = ("drain", "log_json", "no_setup", "drop_schedules", "report", "reload")


class Command(BaseCommand):
    """The command `trunkline_worker`."""

    #: The command line that starts the worker again; None for that of `trunkline-worker`.
    _command: list[str] | None = None

    help = "Works on the queues of TRUNKLINE_APP until SIGTERM or SIGINT, then shuts down gracefully, like trunkline-worker."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declares the options of `trunkline-worker`."""
        program.add_options(parser)
        # Options without a value stay None, so that LOGGING of the settings applies.
        parser.set_defaults(**dict.fromkeys(VALUES))

    def run_from_argv(self, argv: list[str]) -> None:
        """Runs the command as a shell starts it: the process ends even if a handler's thread is
        still running."""
        self._command = _again(argv)
        program.ends_before_work()
        program.console(lambda: super(Command, self).run_from_argv(argv))

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Runs a worker for the application that the settings name, until SIGTERM or SIGINT."""
        application()  # raises if the setting is wrong
        given = [f"--{name.replace('_', '-')}={options[name]}" for name in VALUES if options[name] is not None]
        given += [f"--{name.replace('_', '-')}" for name in FLAGS if options[name]]
        given += [f"--queue={queue}" for queue in options["queue"] or ()]
        logs = options["log_level"] is not None or options["log_json"] or not logging.getLogger().handlers
        program.main([settings.TRUNKLINE_APP, *given], self._command, logs)


def _again(argv: list[str]) -> list[str] | None:
    """Returns the command line that starts the program again, like Django's own reloader. Returns
    None if `argv` does not name the program, because a caller invented it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    # With `python -m`, `argv[0]` is the module's file. As a script, it would import from another
    # folder.
    if spec is not None and spec.origin == argv[0] and spec.name != "__main__":
        return [sys.executable, "-m", spec.name.removesuffix(".__main__"), *argv[1:]]
    return [sys.executable, *argv] if Path(argv[0]).is_file() else None
