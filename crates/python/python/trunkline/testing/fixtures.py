"""The fixtures of pytest."""

from __future__ import annotations

import pytest

from ..sync import Db
from .database import database


@pytest.fixture
def trunkline_url() -> str:
    """The address of a database of the test's own, new and empty."""
    return database()


@pytest.fixture
def trunkline_db(trunkline_url: str) -> Db:
    """A database of the test's own, migrated."""
    db = Db.connect(trunkline_url)
    db.migrate()
    return db
