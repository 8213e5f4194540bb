"""For the tests of programs: a PostgreSQL of their own, a clock that can be moved, and assertions.

With the package installed, pytest knows the fixtures ``trunkline_url`` (the address of a new, empty database) and ``trunkline_db``
(a :class:`trunkline.sync.Db` on it, migrated). The server is found on the machine, or fetched into the user's cache; it starts with
the first test that wants it and ends with the process.
"""

from .asserts import assert_enqueued, assert_not_enqueued, enqueued
from .database import database
from .time import shift

__all__ = ["assert_enqueued", "assert_not_enqueued", "database", "enqueued", "shift"]
