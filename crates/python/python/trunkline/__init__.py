"""A durable message queue in the PostgreSQL you already run.

>>> db = await trunkline.Db.connect("postgres:///app")
>>> await db.migrate()
>>> await db.create_queue("mails", Mail)
>>> mails = await db.queue("mails", Mail)
>>> await mails.enqueue(Mail(to="ada@example.org"))  # on disk when it returns

:mod:`trunkline.sync` has the same names for programs without an event loop, :class:`App` runs
workers, and :mod:`trunkline.testing` helps with tests.
"""

from __future__ import annotations

import atexit
from typing import Any

from ._trunkline import Exit, Lease, Message
from .codec import Codec
from .consumer import Consumer
from .db import Db
from .enqueued import Enqueued
from .errors import BadPayload, Disconnected, LeaseLost, NoQueue, OutcomeUnknown, TrunklineError, WrongType
from .queue import Draft, Queue
from .schedule import Schedule
from .seen import Archived, DeadLetter, Description, Found, Peeked, Scheduled, Stats
from .worker import App, Backoff, Bury, Context, Fixed, RetryAfter, Running, Summary, Task, current

#: The version of the package.
__version__: str

__all__ = [
    "App",
    "Archived",
    "Backoff",
    "BadPayload",
    "Bury",
    "Codec",
    "Consumer",
    "Context",
    "Db",
    "DeadLetter",
    "Description",
    "Disconnected",
    "Draft",
    "Enqueued",
    "Fixed",
    "Found",
    "Lease",
    "LeaseLost",
    "Message",
    "NoQueue",
    "OutcomeUnknown",
    "Peeked",
    "Queue",
    "RetryAfter",
    "Running",
    "Schedule",
    "Scheduled",
    "Stats",
    "Summary",
    "Task",
    "TrunklineError",
    "WrongType",
    "current",
]



def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # slow to import, and rarely needed

    return version(__name__)


# The list of exit handlers has the only reference to this one, and drops it last.
atexit.register(Exit())
