"""Where Django's database is, and which application its settings name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trunkline.worker import App

#: Django's names of what a connection string says.
_NAMES = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "NAME": "dbname"}


def url(alias: str = "default") -> str:
    """The connection string of one of Django's databases, which must be a PostgreSQL."""
    databases: Any = import_module("django.conf").settings.DATABASES
    said = databases[alias]
    if "postgres" not in said["ENGINE"]:
        raise ValueError(f"DATABASES[{alias!r}] is of {said['ENGINE']}, and Trunkline needs PostgreSQL")
    words = {word: str(said[name]) for name, word in _NAMES.items() if said.get(name)}
    return " ".join(f"{word}={_quoted(value)}" for word, value in words.items())


def application() -> App:
    """The application that the setting `TRUNKLINE_APP` names, as `module:name`."""
    settings: Any = import_module("django.conf").settings
    named: str | None = getattr(settings, "TRUNKLINE_APP", None)
    if not named or ":" not in named:
        raise ValueError('the setting TRUNKLINE_APP names no application: "shop.tasks:app", for example')
    module, _, name = named.partition(":")
    found: Any = getattr(import_module(module), name)
    if not isinstance(found, App):
        raise TypeError(f"{named} is no trunkline.App")
    return found


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
