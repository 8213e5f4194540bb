"""Fixtures that import the examples as programs, on the test's database."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def url(url: str) -> str:
    """The test's database, with a table of the program's own."""
    with psycopg.connect(url) as connection:
        connection.execute("create table users (mail text)")
    return url


@pytest.fixture
def example(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Returns a function that imports an example again, on the test's database."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("DATABASE_URL", url)
    brought: list[str] = []

    def bring(name: str) -> ModuleType:
        brought.append(name)
        return importlib.import_module(name)

    yield bring
    for name in brought:
        sys.modules.pop(name, None)


@pytest.fixture
def count(url: str) -> Callable[[str], int]:
    """Returns a function that counts the rows of a query, on a separate connection."""

    def ask(query: str) -> int:
        with psycopg.connect(url) as connection:
            return len(connection.execute(query).fetchall())  # type: ignore[call-overload]

    return ask
