"""Finds an application by ``module:name``."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .app import App


class NoApp(Exception):
    """There is no application of that name."""


def app_of(target: str) -> App:
    """Returns the application that ``module:name`` names; the default name is ``app``. The working
    directory is searched first."""
    module, _, name = target.partition(":")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise NoApp(f"{module!r} names no module: say module:name, with dots between folders, as in mails.tasks:app")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise NoApp(f"there is no module {module!r}: say module:name, from the folder where it can be imported") from None
        raise
    for part in (name or "app").split("."):
        if not hasattr(found, part):
            raise NoApp(f"{module!r} has no {name or 'app'!r}: say which of its names is the trunkline.App")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise NoApp(f"{target} is a {type(found).__name__}, not a trunkline.App")
    return found
