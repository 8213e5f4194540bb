"""Databases for tests."""

from __future__ import annotations

from .._trunkline import test_database


def database() -> str:
    """Creates an empty database on a server that the tests of this process share, and returns its
    address. The first call takes a second or two, each later call a few hundredths of a second. The
    server flushes nothing to disk, and stops with the process."""
    return test_database()
