"""Fixtures that import the examples as programs, on the test's database."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SITE = EXAMPLES / "django_site"

Manage = Callable[..., str]


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


@pytest.fixture
def shop_env(url: str) -> dict[str, str]:
    """The environment of programs of Django's example, on the test's database."""
    place = conninfo_to_dict(url)
    names = {"SHOP_HOST": "host", "SHOP_PORT": "port", "SHOP_USER": "user", "SHOP_DATABASE": "dbname"}
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    env |= {name: str(place.get(of) or "") for name, of in names.items()}
    return env | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def manage(shop_env: dict[str, str]) -> Manage:
    """Returns a function that runs `manage.py`, or a program in Django's shell, on the test's
    database. The function returns the output."""

    def run(*arguments: str, fails: bool = False, cwd: Path = SITE) -> str:
        command = [sys.executable, str(SITE / "manage.py"), *arguments]
        ran = subprocess.run(command, cwd=cwd, env=shop_env, capture_output=True, text=True, timeout=120)
        assert (ran.returncode != 0) == fails, ran.stderr
        return ran.stdout + ran.stderr

    run("migrate", "--verbosity=0")
    run("trunkline_setup")
    return run
