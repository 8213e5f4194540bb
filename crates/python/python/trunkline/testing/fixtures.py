"""The fixtures of pytest."""

from __future__ import annotations

import pytest

from ..sync import Db
from .database import database


@pytest.fixture
def trunkline_url() -> str:
    """The address of a new, empty database for this test."""
    return database()


@pytest.fixture
def trunkline_db(trunkline_url: str) -> Db:
    """A new, migrated database for this test."""
    db = Db.connect(trunkline_url)
    db.migrate()
    return db
