"""The address of Django's database, and the application that the settings name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trunkline.worker import App

#: Django's settings and the keywords of a connection string for them. They override OPTIONS, as in
#: Django.
_NAMES = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
#: The OPTIONS that are ignored. Some belong to Django or to the Python driver, and do not apply to
#: the library's own connections. The others are keywords of libpq for features that these
#: connections do not have: other encodings, Kerberos, compression. `gssencmode` is ignored, too,
#: except for `require`, which the library refuses.
_OF_OTHERS = {
    "autocommit", "client_encoding", "connection_factory", "context", "cursor_factory", "fallback_application_name", "gssdelegation",
    "gsslib", "isolation_level", "krbsrvname", "pool", "prepare_threshold", "row_factory", "server_side_binding",
    "sslcompression",
}  # fmt: skip


def settings_of(alias: str) -> dict[str, Any]:
    """Returns the current settings of one of Django's databases. Django's tests change them to
    those of the test database."""
    connections: Any = import_module("django.db").connections
    settings: dict[str, Any] = connections.settings[alias]
    return settings


def url(alias: str = "default") -> str:
    """Returns the connection string of one of Django's databases, which must use PostgreSQL. It
    contains the database's settings and OPTIONS.

    Raises a `ValueError` for an option that no connection string can express. An option that the
    library does not support is refused when it connects.
    """
    connections: Any = import_module("django.db").connections
    vendor: str = connections[alias].vendor
    said = settings_of(alias)
    if vendor != "postgresql":
        raise ValueError(f"DATABASES[{alias!r}] uses {said['ENGINE']}, but Trunkline needs PostgreSQL")
    options = dict(said.get("OPTIONS") or {})
    role: object = options.pop("assume_role", None)
    if options.get("gssencmode") != "require":
        options.pop("gssencmode", None)
    words = {name: _text(alias, name, value) for name, value in options.items() if name not in _OF_OTHERS and value is not None}
    words |= {word: str(said[name]) for name, word in _NAMES.items() if said.get(name)}
    if said.get("NAME"):
        words["dbname"] = str(said["NAME"])
    elif said.get("NAME") is None and "dbname" not in words:
        words["dbname"] = "postgres"
        words.pop("service", None)  # as Django does
    elif not words.keys() & {"dbname", "service"}:
        raise ValueError(f"DATABASES[{alias!r}] has neither a NAME nor OPTIONS['service'], so the database is unknown")
    if role:
        escaped = str(role).replace("\\", "\\\\").replace(" ", "\\ ")
        words["options"] = f"{words.get('options', '')} -c role={escaped}".strip()
    return " ".join(f"{word}={_quoted(value)}" for word, value in words.items())


def application() -> App:
    """Returns the application that the setting `TRUNKLINE_APP` names as `module:name`."""
    settings: Any = import_module("django.conf").settings
    named: str | None = getattr(settings, "TRUNKLINE_APP", None)
    if not named or ":" not in named:
        raise ValueError('the setting TRUNKLINE_APP names no application: set it to "shop.tasks:app", for example')
    module, _, name = named.partition(":")
    found: Any = getattr(import_module(module), name)
    if not isinstance(found, App):
        raise TypeError(f"{named} is not a trunkline.App")
    return found


def _text(alias: str, name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (str, int, float)) or hasattr(value, "__fspath__"):
        return str(value)
    raise ValueError(
        f"OPTIONS[{name!r}] of DATABASES[{alias!r}] is a {type(value).__name__}, which no connection string can express: "
        "set another address with app.url = …"
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
