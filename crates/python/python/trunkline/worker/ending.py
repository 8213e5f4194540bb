"""Decides how the lease of a message ends, unless the message is done. The functions do not raise,
although an error's text, a retry policy and the handlers of ``logging`` are the user's code and may
fail."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from .backoff import Backoff, Bury, Fixed, Retry, RetryAfter, delay_of
from .results import decisive

_logger = logging.getLogger("trunkline.worker")

#: How a message ended: ``None`` if it is done; otherwise the kind ("retry", "after", "dead",
#: "release", "cancelled"), the seconds, and the reason.
Ending = tuple[str, float, str] | None
#: The reason why a handler that was cancelled has failed.
CANCELLED_REASON = "the handler was cancelled"
#: The ending of a message whose handler has not ended.
UNENDED: Ending = ("retry", 0.0, "the handler did not end")
#: The ending of a released message, whose attempt is not counted.
RELEASED: Ending = ("release", 0.0, "the worker ended")
#: The ending of a cancelled handler: a release if the worker is ending, otherwise a failure, about
#: which the retry policy decides.
CANCELLED: Ending = ("cancelled", 0.0, CANCELLED_REASON)

#: The maximum number of characters of an error's text and of a reason. Longer texts are shortened
#: in the middle.
_TEXT, _REASON = 2_000, 8_000
_HERE = str(Path(__file__).parent)
#: The attribute for the reason that a process wrote while it still had the traceback.
WRITTEN = "__trunkline_reason__"


def text_of(error: BaseException, most: int = _TEXT) -> str:
    """Returns an error's text, or a substitute if the error raises. A long text is shortened."""
    try:
        text = "".join((str(error), ""))
    except BaseException as own:
        return f"(its text is not available: {type(own).__name__})"
    return shortened(text, most)


def shortened(text: str, most: int) -> str:
    """Returns a text that can be stored. Shortens a long text to its head, its tail, and the number
    of characters left out."""
    if len(text) > most:
        tail = most // 4
        head = most - tail
        text = f"{text[:head]} … {len(text) - most} characters left out … {text[-tail:]}"
    return text.encode("utf-8", "replace").decode("utf-8")


def reason_of(error: BaseException) -> str:
    """Returns the reason that is kept with the message: one line with the error, where it was
    raised and its cause; then the traceback."""
    try:
        written = getattr(error, WRITTEN, None)
        if type(written) is str:
            return written
        line, cause = _named(error), error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is not None:
            code = trace.tb_frame.f_code
            line += f" ({code.co_filename}:{trace.tb_lineno} in {code.co_name})"
        if cause is not None and cause is not error:
            line += f"; because of {_named(cause)}"
        line = line.replace("\r", " ").replace("\n", " ")
        theirs = _theirs(error.__traceback__)
        if theirs is None and cause is None:
            return shortened(line, _REASON)
        frames = "".join(traceback.format_exception(type(error), error, theirs, limit=-20))
        return shortened(f"{line}\n{frames.rstrip()}", _REASON)
    except BaseException:
        return _nameless(error)


def _nameless(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}, which cannot be described"
    except BaseException:
        return "an error that cannot be described"


def _named(error: BaseException) -> str:
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    """Returns the traceback without the leading frames of this package."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace


def unwrapped(error: BaseException) -> BaseException:
    """Returns the ``Bury`` or ``RetryAfter`` of a group that contains no other error, as a
    ``TaskGroup`` raises it. Returns any other error unchanged."""
    decides = decisive(_leaves(error))
    return decides if isinstance(decides, (Bury, RetryAfter)) else error


def _leaves(error: BaseException) -> list[BaseException]:
    # Python 3.10 has no groups; libraries for it use those of a package.
    kinds: list[Any] = [getattr(sys.modules.get(module), "BaseExceptionGroup", None) for module in ("builtins", "exceptiongroup")]
    group: Any = error
    if not isinstance(error, tuple(kind for kind in kinds if kind is not None)):
        return [error]
    return [leaf for one in group.exceptions for leaf in _leaves(one)]


def failed(retry: Retry, attempt: int, error: BaseException) -> tuple[str, float, str]:
    """Returns the ending of a message whose handler raised an error."""
    try:
        error = unwrapped(error)
        if isinstance(error, Bury):
            return "dead", 0.0, text_of(error, _REASON) or "the handler buried the message"
        reason = reason_of(error)
        if isinstance(error, RetryAfter):
            try:
                return "after", delay_of(error.delay), text_of(error, _REASON)
            except Exception as own:  # a subclass without a delay
                return "retry", 0.0, f"its delay is unusable ({_named(own)}): {reason}"
        if isinstance(retry, (Backoff, Fixed)):
            return "retry", 0.0, reason
        try:
            delay = retry(attempt, error)
            return ("dead", 0.0, reason) if delay is None else ("after", delay_of(delay), reason)
        except BaseException as own:
            line, _, rest = reason.partition("\n")
            return "retry", 0.0, f"{line}; and its retry policy failed: {_named(own)}\n{rest}".rstrip()
    except BaseException:
        return "retry", 0.0, _nameless(error)


def unreadable(retry: Retry, attempt: int, error: BaseException) -> tuple[str, float, str]:
    """Returns the ending of a message whose payload cannot be read."""
    kind, delay, reason = failed(retry, attempt, error)
    return kind, delay, f"the payload cannot be read: {reason}"


def log(level: int, text: str, *arguments: Any, error: BaseException | None = None, about: Callable[[], dict[str, Any]] = dict) -> None:
    """Logs a text. Does not raise, even if a handler of the log does."""
    try:
        if _logger.isEnabledFor(level):
            _logger.log(level, text, *arguments, exc_info=error, extra=about())
    except BaseException as own:
        try:
            traceback.print_exception(type(own), own, own.__traceback__, limit=5)
        except BaseException:
            pass  # standard error may be closed
