"""Finds an application by ``module:name``."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .app import App


class NoApp(Exception):
    """The named application does not exist."""


def app_of(target: str) -> App:
    """Returns the application that ``module:name`` names; the default name is ``app``. Searches the
    working directory first."""
    module, _, name = target.partition(":")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise NoApp(f"{module!r} is not the name of a module: write module:name, with dots between packages, as in mails.tasks:app")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise NoApp(f"there is no module {module!r}: write module:name, and start in a folder from which the module can be imported") from None
        raise
    for part in (name or "app").split("."):
        if not hasattr(found, part):
            raise NoApp(f"{module!r} has no {name or 'app'!r}: write module:name, with the name of the trunkline.App")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise NoApp(f"{target} is a {type(found).__name__}, not a trunkline.App")
    return found
