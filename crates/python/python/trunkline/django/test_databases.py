"""Closes the connections to a test database before Django drops it, because PostgreSQL refuses the
drop while a connection is open."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

#: The number of seconds to wait for the connections to close. After that, Django drops the
#: database anyway and reports PostgreSQL's refusal itself.
_LONGEST = 5.0


class Closes(Protocol):
    """An application with connections to one of Django's databases."""

    alias: str

    def close(self) -> None:
        """Closes the application's connections."""
        ...


def let_go_at_the_end(applications: Callable[[], Iterable[Closes]]) -> None:
    """Makes Django close these applications' connections to a test database before it drops the
    database."""
    creation: Any = import_module("django.db.backends.base.creation").BaseDatabaseCreation
    destroy: Any = creation.destroy_test_db
    if hasattr(destroy, "lets_go_of_trunkline"):
        return

    @functools.wraps(destroy)
    def destroy_test_db(self: Any, *arguments: Any, **named: Any) -> Any:
        theirs = [app for app in applications() if app.alias == self.connection.alias]
        for app in theirs:
            app.close()
        if theirs and self.connection.vendor == "postgresql":
            # Without an answer, for example because the server ended Django's connection, Django
            # still has to drop the database.
            with suppress(import_module("django.db").Error):
                _wait_until_gone(self.connection)
        return destroy(self, *arguments, **named)

    setattr(destroy_test_db, "lets_go_of_trunkline", True)
    creation.destroy_test_db = destroy_test_db


def _wait_until_gone(connection: Any) -> None:
    named: str = connection.settings_dict.get("OPTIONS", {}).get("application_name", "trunkline")
    asked = "select pg_catalog.count(*) from pg_catalog.pg_stat_activity where datname operator(pg_catalog.=) pg_catalog.current_database() and application_name operator(pg_catalog.=) %s and pid operator(pg_catalog.<>) pg_catalog.pg_backend_pid()"
    until = time.monotonic() + _LONGEST
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(asked, [named])
            if cursor.fetchone()[0] == 0:
                return
            time.sleep(0.02)
