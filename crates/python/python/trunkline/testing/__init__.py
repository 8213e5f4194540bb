"""Helpers for a program's tests: a private PostgreSQL, a clock that can be moved, and assertions.

If the package is installed, pytest has two fixtures: ``trunkline_url`` is the address of a new,
empty database, and ``trunkline_db`` is a migrated :class:`trunkline.sync.Db` on such a database.
The PostgreSQL is an installed one, or is downloaded into the user's cache. The server starts with
the first test that uses it and stops with the process.
"""

from .asserts import assert_enqueued, assert_not_enqueued, enqueued
from .database import database
from .time import shift

__all__ = ["assert_enqueued", "assert_not_enqueued", "database", "enqueued", "shift"]
