"""An application whose handlers may use the ORM."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from trunkline import worker
from trunkline.django.place import url


class App(worker.App):
    """A `trunkline.App` on one of Django's databases.

    Handlers that are plain functions run in threads, each with connections of its own: they are looked at before and behind each
    message as Django does with each request, so that one that broke, or is older than `CONN_MAX_AGE`, is not used again.
    """

    def __init__(self, alias: str = "default") -> None:
        _set_up()
        super().__init__(url(alias))
        self.alias = alias

    def task(self, **named: Any) -> Any:
        task: Any = super().task
        decorate = task(**named)

        def looked_after(function: Callable[..., Any]) -> Any:
            return decorate(_looked_after(function))

        return looked_after


def _set_up() -> None:
    """Where `trunkline-worker` imports the tasks, nobody has set Django up yet; where Django itself does, it is about to be."""
    apps: Any = import_module("django.apps").apps
    if not apps.ready and not apps.loading:
        import_module("django").setup()


def _looked_after(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        return function
    close_old_connections: Callable[[], None] = import_module("django.db").close_old_connections

    @functools.wraps(function)
    def handle(*arguments: Any, **named: Any) -> Any:
        close_old_connections()
        try:
            return function(*arguments, **named)
        finally:
            close_old_connections()

    return handle
