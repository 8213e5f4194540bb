"""An application whose handlers may use the ORM."""

from __future__ import annotations

import asyncio
import functools
import inspect
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

from trunkline import worker
from trunkline.django.place import url
from trunkline.worker.task import underlying

_applications: weakref.WeakSet[App] = weakref.WeakSet()


def applications() -> list[App]:
    """Returns all applications of this process that use Django's databases."""
    return list(_applications)


class App(worker.App):
    """A `trunkline.App` on one of Django's databases. It reads the address from the current
    settings, so in Django's tests it uses the test database.

    The connections of handlers in threads are checked before and after each message, as Django does
    for each request. So a connection that is broken, or older than `CONN_MAX_AGE`, is not used
    again. Each asynchronous handler of a worker has a thread and connections of its own, which end
    with it. Under `async_to_sync`, as in tests, handlers share the caller's thread.
    """

    _remedy = "`manage.py trunkline_setup` creates it (in tests, `call_command('trunkline_setup')`), and so does `manage.py trunkline_worker` when it starts"

    def __init__(self, alias: str = "default") -> None:
        _set_up()
        self._url = ""
        self.alias = alias
        super().__init__()
        _applications.add(self)

    @property
    def url(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The address of Django's database, unless the program has set another address."""
        return self._url or url(self.alias)

    @url.setter
    def url(self, said: str) -> None:
        self._url = said

    def _handler_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a handler before and after which Django's connections are checked, or to which
        they belong. Direct calls run the function, because a caller keeps its connections."""
        return _looked_after(function)


def _set_up() -> None:
    """Sets up Django if `trunkline-worker` imports the tasks. If Django itself imports them, its
    setup is already running."""
    apps: Any = import_module("django.apps").apps
    if not apps.ready and not apps.loading:
        import_module("django").setup()


def _looked_after(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(underlying(function)):
        return _looked_after_async(function)
    close_old_connections: Callable[[], None] = import_module("django.db").close_old_connections

    @functools.wraps(function)
    def handle(*arguments: Any, **named: Any) -> Any:
        close_old_connections()
        try:
            return function(*arguments, **named)
        finally:
            close_old_connections()

    return handle


def _looked_after_async(function: Callable[..., Any]) -> Callable[..., Any]:
    sync: Any = import_module("asgiref.sync")
    close_there = sync.sync_to_async(_close_connections)

    @functools.wraps(function)
    async def handle(*arguments: Any, **named: Any) -> Any:
        # Without a context, all handlers would share one thread of the asynchronous ORM, and each
        # handler that ends would close the connection that others are reading from.
        async with sync.ThreadSensitiveContext() as context:
            try:
                result = function(*arguments, **named)
                return await result if inspect.isawaitable(result) else result
            finally:
                try:
                    await close_there()
                except asyncio.CancelledError:
                    # The worker ends, and the thread may hang. Older releases of asgiref would wait
                    # for it in the event loop.
                    executor = sync.SyncToAsync.context_to_thread_executor.pop(context, None)
                    if executor is not None:
                        executor.shutdown(wait=False)
                    raise

    return handle


def _close_connections() -> None:
    """Closes the connections of this thread, except those in a transaction, which belong to a
    test."""
    for connection in import_module("django.db").connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
