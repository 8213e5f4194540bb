"""The ways to hold a transaction open, with one interface.

`begin` yields a connection, commits at the end, and rolls back on an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import django
import psycopg
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

BLOCKING = ["psycopg", "sqlalchemy connection", "sqlalchemy session", "django"]
AWAITING = ["psycopg async", "asyncpg", "asyncpg pool", "sqlalchemy async connection", "sqlalchemy async session", "sqlalchemy over psycopg async"]


class Door:
    """A driver, and a change that the user makes on its connection."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.awaits = name in AWAITING

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Any]:
        async with _OPEN[self.name](self.url) as connection:
            yield connection

    @asynccontextmanager
    async def commits_each(self) -> AsyncIterator[Any]:
        """Yields a connection that commits each statement at once."""
        async with _COMMITS_EACH[self.name](self.url) as connection:
            yield connection

    async def effect(self, connection: Any) -> None:
        """Makes the user's own change in the transaction."""
        statement = "insert into effects default values"
        if self.name == "django":
            with connection.cursor() as cursor:
                cursor.execute(statement)
        elif "sqlalchemy" in self.name:
            ran = connection.execute(text(statement))
            await ran if self.awaits else None
        else:
            ran = connection.execute(statement)
            await ran if self.awaits else None


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[Any]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@asynccontextmanager
async def _psycopg_async(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


def _keywords(url: str) -> dict[str, Any]:
    names = {"dbname": "database"}
    return {names.get(name, name): value for name, value in conninfo_to_dict(url).items()}


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(**_keywords(url))
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(**_keywords(url), min_size=1, max_size=1) as pool:
        async with pool.acquire() as connection, connection.transaction():
            yield connection


@asynccontextmanager
async def _sqlalchemy(url: str) -> AsyncIterator[Any]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def _session(url: str) -> AsyncIterator[Any]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@asynccontextmanager
async def _sqlalchemy_async(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(**_keywords(url)))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def _session_async(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(**_keywords(url)))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@asynccontextmanager
async def _sqlalchemy_psycopg_async(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine("postgresql+psycopg://", async_creator=lambda: psycopg.AsyncConnection.connect(url))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def _django(url: str) -> AsyncIterator[Any]:
    if not settings.configured:
        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}})
        django.setup()
    # Django forbids its ORM in a coroutine. The tests need only its connection, so they disable
    # the check.
    import os

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    from django.db import connections, transaction

    place = conninfo_to_dict(url)
    old = connections["default"]
    old.close()
    names = {"NAME": "dbname", "HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
    old.settings_dict.update({name: str(place.get(of) or "") for name, of in names.items()})
    try:
        with transaction.atomic():
            yield connections["default"]
    finally:
        connections["default"].close()


_OPEN = {
    "psycopg": _psycopg,
    "sqlalchemy connection": _sqlalchemy,
    "sqlalchemy session": _session,
    "django": _django,
    "psycopg async": _psycopg_async,
    "asyncpg": _asyncpg,
    "asyncpg pool": _asyncpg_pool,
    "sqlalchemy async connection": _sqlalchemy_async,
    "sqlalchemy async session": _session_async,
    "sqlalchemy over psycopg async": _sqlalchemy_psycopg_async,
}


@asynccontextmanager
async def _psycopg_each(url: str) -> AsyncIterator[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def _psycopg_async_each(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def _asyncpg_each(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(**_keywords(url))
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _asyncpg_pool_each(url: str) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(**_keywords(url), min_size=1, max_size=1) as pool, pool.acquire() as connection:
        yield connection


def _sqlalchemy_each(of: Any) -> Any:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), isolation_level="AUTOCOMMIT")
        try:
            with of(engine) as connection:
                yield connection
        finally:
            engine.dispose()

    return opened


def _sqlalchemy_async_each(driver: str, of: Any) -> Any:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        made = {"asyncpg": lambda: asyncpg.connect(**_keywords(url)), "psycopg": lambda: psycopg.AsyncConnection.connect(url)}[driver]
        engine = create_async_engine(f"postgresql+{driver}://", async_creator=made, isolation_level="AUTOCOMMIT")
        try:
            async with of(engine) as connection:
                yield connection
        finally:
            await engine.dispose()

    return opened


@asynccontextmanager
async def _django_each(url: str) -> AsyncIterator[Any]:
    async with _django(url):
        pass  # the settings are in force
    from django.db import connections

    try:
        yield connections["default"]
    finally:
        connections["default"].close()


_COMMITS_EACH = {
    "psycopg": _psycopg_each,
    "sqlalchemy connection": _sqlalchemy_each(lambda engine: engine.connect()),
    "sqlalchemy session": _sqlalchemy_each(Session),
    "django": _django_each,
    "psycopg async": _psycopg_async_each,
    "asyncpg": _asyncpg_each,
    "asyncpg pool": _asyncpg_pool_each,
    "sqlalchemy async connection": _sqlalchemy_async_each("asyncpg", lambda engine: engine.connect()),
    "sqlalchemy async session": _sqlalchemy_async_each("asyncpg", AsyncSession),
    "sqlalchemy over psycopg async": _sqlalchemy_async_each("psycopg", lambda engine: engine.connect()),
}
