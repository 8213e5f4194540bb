"""Databases for tests."""

from __future__ import annotations

from .._trunkline import test_database


def database() -> str:
    """The address of a new, empty database, on a server that the tests of this process share. The first call takes a second or two,
    each further one some hundredths. The server flushes nothing to disk, and ends with the process."""
    return test_database()
