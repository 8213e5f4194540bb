"""When a failed message is tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..times import Duration, seconds


@dataclass(frozen=True)
class Backoff:
    """``first`` after the first attempt, then twice as long each time, ``most`` at most; of each, a random part between half and all,
    so that what failed together does not come back together. The queue's own ``max_attempts`` holds beside it."""

    first: Duration = 1.0
    most: Duration = 3600.0
    max_attempts: int | None = None


@dataclass(frozen=True)
class Fixed:
    """Always that long."""

    delay: Duration
    max_attempts: int | None = None


#: A policy of your own: given the attempt that failed (1 for the first) and its error, how long the message waits; ``None`` makes it a
#: dead letter.
Custom = Callable[[int, Exception], Duration | None]
Retry = Backoff | Fixed | Custom
#: What became of a message: nothing more, or the kind of failure ("retry", "after", "dead"), the seconds, and the reason.
Said = tuple[str, float, str] | None


class RetryAfter(Exception):
    """Raised by a handler: try again after that long, at most 365 days."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        super().__init__(reason or f"to be tried again after {seconds(delay):g} s")
        self.delay = seconds(delay)


class Bury(Exception):
    """Raised by a handler: do not try again. The message is a dead letter at once."""


def as_native(retry: Retry) -> tuple[bool, float, float, int | None]:
    """As the native module takes a policy; one of the user's own is asked before."""
    if isinstance(retry, Fixed):
        return False, seconds(retry.delay), 0.0, retry.max_attempts
    if isinstance(retry, Backoff):
        return True, seconds(retry.first), seconds(retry.most), retry.max_attempts
    return True, 1.0, 3600.0, None


def reason_of(error: BaseException) -> str:
    """What is kept with the message: the error, its causes, and where it was raised."""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        code = trace.tb_frame.f_code
        told += f" ({code.co_filename}:{trace.tb_lineno} in {code.co_name})"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return told if cause is None or cause is error else f"{told}; because of {type(cause).__name__}: {cause}"


def verdict(retry: Retry, attempt: int, error: Exception) -> tuple[str, float, str]:
    """What becomes of a message whose handler raised an error."""
    reason = reason_of(error)
    if isinstance(error, Bury):
        return "dead", 0.0, str(error) or "the handler gave it up"
    if isinstance(error, RetryAfter):
        return "after", error.delay, str(error)
    if isinstance(retry, (Backoff, Fixed)):
        return "retry", 0.0, reason
    try:
        delay = retry(attempt, error)
    except Exception as own:
        return "retry", 0.0, f"{reason}; and its retry policy failed: {reason_of(own)}"
    return ("dead", 0.0, reason) if delay is None else ("after", seconds(delay), reason)
