"""Selects the event loop: uvloop if the contender prefers it and it is installed, otherwise
asyncio's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bench.contenders import contender


def run_of(name: str) -> Callable[[Any], Any]:
    if contender(name).uvloop and find_spec("uvloop") is not None:
        run: Callable[[Any], Any] = import_module("uvloop").run
        return run
    return asyncio.run
