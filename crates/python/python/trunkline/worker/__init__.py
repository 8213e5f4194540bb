"""Workers, which run a function for every message of a queue, at least once."""

from .app import App
from .backoff import Backoff, Bury, Fixed, RetryAfter
from .context import Context, Running, current
from .summary import Summary
from .task import Task

__all__ = ["App", "Backoff", "Bury", "Context", "Fixed", "RetryAfter", "Running", "Summary", "Task", "current"]
