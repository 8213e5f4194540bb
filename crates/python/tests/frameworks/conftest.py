"""The examples, as programs that find their modules."""

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
    """With a table of the program's own."""
    with psycopg.connect(url) as connection:
        connection.execute("create table users (mail text)")
    return url


@pytest.fixture
def example(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports an example again, on the test's database."""
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
    """How many rows a query has, asked from outside."""

    def ask(query: str) -> int:
        with psycopg.connect(url) as connection:
            return len(connection.execute(query).fetchall())  # type: ignore[call-overload]

    return ask
