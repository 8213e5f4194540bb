"""An application whose handlers may use the ORM."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

from trunkline import worker
from trunkline.django.place import url

_applications: weakref.WeakSet[App] = weakref.WeakSet()


def applications() -> list[App]:
    """Returns all applications of this process that use Django's databases."""
    return list(_applications)


class App(worker.App):
    """A `trunkline.App` on one of Django's databases. It reads the address from the current
    settings, so in Django's tests it uses the test database.

    The handlers' connections, in threads and behind the asynchronous ORM, are checked before and
    after each message, as Django does for each request. So a connection that is broken, or older
    than `CONN_MAX_AGE`, is not used again.
    """

    _remedy = "`manage.py trunkline_setup` creates it (in tests, `call_command('trunkline_setup')`), and so does a worker when it starts"

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

    def task(self, **named: Any) -> Any:
        """Makes a function the handler of a queue: see `trunkline.App.task`.

        Django's old connections are closed before and after each call.
        """
        task: Any = super().task
        decorate = task(**named)

        def looked_after(function: Callable[..., Any]) -> Any:
            return decorate(_looked_after(function))

        return looked_after


def _set_up() -> None:
    """Sets up Django if `trunkline-worker` imports the tasks. If Django itself imports them, its
    setup is already running."""
    apps: Any = import_module("django.apps").apps
    if not apps.ready and not apps.loading:
        import_module("django").setup()


def _looked_after(function: Callable[..., Any]) -> Callable[..., Any]:
    close_old_connections: Callable[[], None] = import_module("django.db").close_old_connections
    if inspect.iscoroutinefunction(function):
        # Runs in the thread in which the asynchronous ORM has its connections.
        close_there: Callable[[], Any] = import_module("asgiref.sync").sync_to_async(close_old_connections)

        @functools.wraps(function)
        async def handle_async(*arguments: Any, **named: Any) -> Any:
            await close_there()
            try:
                return await function(*arguments, **named)
            finally:
                await close_there()

        return handle_async

    @functools.wraps(function)
    def handle(*arguments: Any, **named: Any) -> Any:
        close_old_connections()
        try:
            return function(*arguments, **named)
        finally:
            close_old_connections()

    return handle
