"""Sets Django up in a process that runs handlers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def set_up(databases: Mapping[str, Any]) -> None:
    """Sets Django up with the names that its databases have in the worker. Django's tests change
    them in memory, to those of the test databases."""
    connections: Any = import_module("django.db").connections
    for alias, name in databases.items():
        if alias in connections.settings:
            connections.settings[alias]["NAME"] = name
    import_module("django").setup()
