"""Converts the error for a lost lease to the package's own error; all other errors remain those of
the driver. Refuses calls that need a transaction."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from trunkline.errors import LeaseLost
from trunkline.transaction.calls import Call

LEASE_LOST = "TL001"


def refuse_outside(call: Call, is_outside: bool) -> None:
    """Raises `RuntimeError` for a call that needs a transaction on a connection that has none."""
    if call.needs_transaction and is_outside:
        raise RuntimeError(
            "take outside of a transaction would delete its messages for good, because this connection commits each statement at once: "
            "begin a transaction first; for delivery at most once, call the library's own Queue.take"
        )


@contextmanager
def refused(error_of_the_driver: type[Exception]) -> Generator[None, None, None]:
    """Opens a context in which the driver's error for a lost lease becomes `LeaseLost`. Other
    errors pass unchanged."""
    try:
        yield
    except error_of_the_driver as error:
        if sqlstate(error) == LEASE_LOST:
            raise LeaseLost(str(_bare(error)), sqlstate=LEASE_LOST) from error
        raise


def sqlstate(error: BaseException | None) -> str | None:
    """Returns the SQLSTATE of a driver's error, or of the error that SQLAlchemy or Django wraps."""
    seen = 0
    while error is not None and seen < 8:
        for name in ("sqlstate", "pgcode"):
            state = getattr(error, name, None)
            if isinstance(state, str):
                return state
        error = getattr(error, "orig", None) or error.__cause__
        seen += 1
    return None


def _bare(error: BaseException) -> BaseException:
    """Returns the error without the statement and its values, which SQLAlchemy includes in its
    message: payloads must not reach logs."""
    return getattr(error, "orig", None) or error
