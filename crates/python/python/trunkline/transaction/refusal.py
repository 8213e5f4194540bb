"""What the functions refuse, as our errors; what else fails stays the driver's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from trunkline.errors import LeaseLost

LEASE_LOST = "TL001"


@contextmanager
def refused(error_of_the_driver: type[Exception]) -> Generator[None, None, None]:
    """A context in which the driver's error for a lost lease becomes `LeaseLost`. Other errors pass unchanged."""
    try:
        yield
    except error_of_the_driver as error:
        if sqlstate(error) == LEASE_LOST:
            raise LeaseLost(str(_bare(error)), sqlstate=LEASE_LOST) from error
        raise


def sqlstate(error: BaseException | None) -> str | None:
    """The SQLSTATE of a driver's error, or of the one that SQLAlchemy or Django wraps."""
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
    """Without the statement and its values, which SQLAlchemy writes into its message: payloads are not for logs."""
    return getattr(error, "orig", None) or error
