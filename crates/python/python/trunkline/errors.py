"""The errors of the library. They state what happened; the caller decides whether to try again.

Every error of the queue or of the database below it is a :class:`TrunklineError`. Its text says
what happened and what to do; its predicates say what is certain. The subclasses are for ``except``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = [
    "BadPayload",
    "Disconnected",
    "LeaseLost",
    "NoQueue",
    "OutcomeUnknown",
    "TrunklineError",
    "WrongType",
]


class TrunklineError(Exception):
    """An error of the queue or of the database below it."""

    def __init__(
        self,
        text: str,
        *,
        sqlstate: str | None = None,
        lost_ids: Sequence[int] = (),
        is_outcome_unknown: bool = False,
        is_closed: bool = False,
        is_drained: bool = False,
    ) -> None:
        super().__init__(text)
        #: The SQLSTATE of the server's error, if the server reported one.
        self.sqlstate = sqlstate
        #: The ids of the messages whose leases were lost; empty for every other error.
        self.lost_ids = list(lost_ids)
        #: True if the connection broke before the answer: the call may or may not have taken
        #: effect.
        self.is_outcome_unknown = is_outcome_unknown
        #: True if there was no connection to the database, or the connection is closed.
        self.is_closed = is_closed
        #: True if the queue was drained on this server, and accepts no more messages.
        self.is_drained = is_drained

    @property
    def is_lease_lost(self) -> bool:
        """True if a lease ended before it was settled: nothing was changed for ``lost_ids``."""
        return isinstance(self, LeaseLost)

    @property
    def is_no_queue(self) -> bool:
        """True if the queue does not exist, or was dropped."""
        return isinstance(self, NoQueue)

    @property
    def is_wrong_type(self) -> bool:
        """True if the queue's payload type and the Python type do not match."""
        return isinstance(self, WrongType)

    @property
    def is_bad_payload(self) -> bool:
        """True if the payload itself was refused: by its codec, because of its size, or by the
        server."""
        return isinstance(self, BadPayload)


class LeaseLost(TrunklineError):
    """The leases of ``lost_ids`` had already ended: another consumer may have these messages now.
    The other messages of the call are settled. In a transaction of your own, nothing of the call
    takes effect, and ``lost_ids`` is empty."""


class OutcomeUnknown(TrunklineError):
    """The connection broke before the answer: the call may or may not have taken effect."""


class Disconnected(TrunklineError):
    """The database could not be reached; the call had no effect."""


class NoQueue(TrunklineError):
    """The queue does not exist."""


class WrongType(TrunklineError):
    """The queue has payloads of another type."""


class BadPayload(TrunklineError, ValueError):
    """The payload cannot be stored. In a batch of several callers, only the caller with the bad
    payload receives this error."""


#: Replacements for names of Rust and of the command-line program in the library's messages: the
#: wheel has neither.
_WORDS: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"create it with Db::create_queue or `trunkline queue create [^`]*`", "create it with Db.create_queue, or App.setup where it is a task's"),
    (r"run `trunkline migrate[^`]*` or Db::migrate first", "call Db.migrate or App.setup first, as the role that owns the schema"),
    (r"`trunkline migrate` or Db::migrate created", "Db.migrate or App.setup created"),
    (
        r"`trunkline grant (\S+) --producer (\S+) --consumer (\S+)`",
        lambda of: f"`select trunkline.grant_rights({_quoted(of[2])}, 'producer', {_quoted(of[1])})`, and the same with 'consumer', in SQL",
    ),
    (
        r"`trunkline grant (\S+) --(producer|consumer|operator) (\S+)`",
        lambda of: f"`select trunkline.grant_rights({_quoted(of[3])}, '{of[2]}', {_quoted(of[1])})` in SQL",
    ),
    (
        r"`trunkline grant (\S+) \{\S+\} (\S+)`",
        lambda of: f"`select trunkline.grant_rights({_quoted(of[2])}, 'producer', {_quoted(of[1])})` in SQL, or with 'consumer' or 'operator'",
    ),
    (r"`trunkline cancel \S+ (\d+)`", r"Queue.cancel(\1)"),
    (r"`trunkline dead discard \S+ (\d+)`", r"Queue.discard(\1)"),
    (r"\btrunkline\.alter_queue\b", "Db.alter_queue"),
    (r"\b(?:Settings|Changes)::(\w+)", r"the setting \1"),
    (r"\bDraft::new\(payload\)", "queue.draft(payload)"),
    (r"\b(Db|Queue|Consumer|Transaction|Schedule)::(\w+)", r"\1.\2"),
    (r"(?:\w+::)+(?:Raw|Seen) (?=(?:cannot|can) be)", "the payload "),
    (r"(?:\w+::)+Metadata (?=(?:cannot|can) be)", "the metadata "),
]


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def in_python(text: str) -> str:
    """Returns a message of the library with the names of the Python package in its advice."""
    for words, ours in _WORDS:
        text = re.sub(words, ours, text)
    return text


def text_of(error: BaseException) -> str:
    """Returns an error's class and text. The user's code creates the text, and may fail."""
    try:
        return sendable(f"{type(error).__name__}: {error}")
    except Exception:
        return f"{type(error).__name__} (its text is not available)"


def sendable(text: str) -> str:
    """Returns a human-readable text in a form that PostgreSQL can store. Characters that UTF-8
    cannot encode, such as a lone surrogate in a file name, become question marks; a zero byte
    becomes U+FFFD."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # for callers without a type checker
        raise TypeError(f"an error or a reason must be a str, not {text!r:.50}: pass str(error)")
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


Flags = tuple[bool, bool, bool, bool, bool, bool, bool]


def made(text: str, sqlstate: str | None, lost_ids: list[int], flags: Flags) -> TrunklineError:
    """Returns the exception for an error of the native module."""
    lease_lost, unknown, closed, no_queue, wrong_type, bad_payload, drained = flags
    kinds: list[tuple[bool, type[TrunklineError]]] = [
        (lease_lost, LeaseLost),
        (unknown, OutcomeUnknown),
        (no_queue, NoQueue),
        (wrong_type, WrongType),
        (bad_payload, BadPayload),
        (closed, Disconnected),
    ]
    kind = next((kind for holds, kind in kinds if holds), TrunklineError)
    return kind(in_python(text), sqlstate=sqlstate, lost_ids=lost_ids, is_outcome_unknown=unknown, is_closed=closed, is_drained=drained)
