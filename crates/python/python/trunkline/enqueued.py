"""The outcome of an enqueue."""

from __future__ import annotations

from typing import ClassVar, Literal

Outcome = Literal["new", "duplicate", "replaced"]


class Enqueued(int):
    """The id of a message, with the outcome of its enqueue.

    It is an ``int``, equal to the id, and every call that takes ids accepts it. Two outcomes with
    the same id are equal; compare ``outcome`` to distinguish them. ``str`` and f-strings write the
    id, and ``id`` is a plain ``int``, for libraries such as msgspec that refuse subclasses of
    ``int``.

    >>> sent = await reports.draft(report).unique("acme").enqueue()
    >>> if sent.is_new:
    ...     print(f"report {sent} is on its way")
    """

    __slots__ = ()

    #: "new"; with a unique key also "duplicate" (another message has the key) or "replaced"
    #: (another message has the key, and now this payload).
    outcome: ClassVar[Outcome] = "new"

    @staticmethod
    def of(id: int, outcome: Outcome = "new") -> Enqueued:
        """Creates an outcome, for a program's tests."""
        return _KINDS[outcome](id)

    @property
    def id(self) -> int:
        """The id as a plain ``int``. With a unique key, it may be the id of another message."""
        return int(self)

    @property
    def is_new(self) -> bool:
        """True if the enqueue added a message to the queue."""
        return self.outcome == "new"

    def __repr__(self) -> str:
        return f"Enqueued(id={self.id}, outcome={self.outcome!r})"

    __str__ = int.__repr__


class Duplicate(Enqueued):
    """The id of another message that already has the unique key."""

    __slots__ = ()
    outcome = "duplicate"


class Replaced(Enqueued):
    """The id of the message that already had the unique key, and now has this payload, metadata and
    due time."""

    __slots__ = ()
    outcome = "replaced"


_KINDS: dict[Outcome, type[Enqueued]] = {"new": Enqueued, "duplicate": Duplicate, "replaced": Replaced}
