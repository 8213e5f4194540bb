"""The native module. Its verbs take the bridge of an event loop as the first argument; without a
bridge, the calling thread waits."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, overload

from .enqueued import Enqueued

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
U = TypeVar("U")

class Lease:
    """The right to one message for one attempt. Each verb that ends a lease names both, so a late
    worker changes nothing."""

    @property
    def id(self) -> int:
        """The message's id."""
    @property
    def attempt(self) -> int:
        """The attempt that the lease belongs to."""
    def __init__(self, id: int, attempt: int) -> None: ...
    def __hash__(self) -> int: ...
    def __lt__(self, other: Lease) -> bool: ...

class Message(Generic[T_co]):
    """A message as a consumer receives it."""

    @property
    def id(self) -> int:
        """The message's id: unique in its queue, and stable."""
    @property
    def attempt(self) -> int:
        """The number of deliveries so far, including this one: 1 for the first lease; 0 if the
        message was taken and never leased."""
    @property
    def attempts(self) -> int:
        """The number of attempts that count towards the queue's maximum and the retries."""
    @property
    def payload(self) -> T_co:
        """The decoded payload."""
    @property
    def enqueued_at(self) -> datetime:
        """The time at which the message was enqueued, by the server's clock."""
    @property
    def metadata(self) -> dict[str, str]:
        """A copy of the message's metadata: names and values, usually none."""
    @property
    def key(self) -> str | None:
        """The message's key, if a worker leased it from a queue whose messages have keys."""
    @property
    def lease(self) -> Lease:
        """The lease, which names this delivery; small, and without the payload."""
    def with_payload(self, payload: U) -> Message[U]:
        """Returns the same message with another payload."""

def depth(json: str) -> int:
    """Returns the number of nested levels of lists and objects in a JSON text."""

class Bridge:
    """Connects the native module with one event loop. Create it in the loop's thread."""

    def __init__(self, event_loop: object) -> None: ...
    def fileno(self) -> int:
        """Returns the descriptor that the loop watches. It is readable when outcomes have
        arrived."""
    def resolve(self) -> None:
        """Resolves the futures whose outcomes have arrived. The loop calls it when the descriptor
        is readable."""
    def flush(self) -> None:
        """Sends the enqueues of the current turn of the loop."""

class Call:
    """A dequeue whose caller may leave before the answer arrives."""

    def leave(self) -> None:
        """Ends the call. Messages that have arrived, or still arrive, are released."""

class Offer:
    """Dequeued messages that have no owner yet. Messages that the caller does not accept are
    released. Leased messages are released when half of their lease has passed."""

    def __len__(self) -> int: ...
    def refuse(self) -> None:
        """Releases the messages. Does nothing after ``accept``."""
    @overload
    def accept(self, decode: None, ahead: bool = False) -> list[Message[bytes]] | None:
        """Returns the messages, with payloads as bytes or as ``decode`` returns them. Call this
        method only once. Returns ``None`` if the messages were leased, and were released because
        half of their lease had passed.

        A message whose ``decode`` raises an exception fails its attempt and is left out. If
        ``decode`` is interrupted, all messages are released and the exception is raised: a
        ``KeyboardInterrupt``, a ``SystemExit``, or an exception that a second ``decode`` does not
        raise. Raises ``RuntimeError`` if the messages have already been accepted or refused.

        If ``ahead`` is true, leased messages that do not ``begin`` are released when half of their
        lease has passed. If decoding several messages takes almost that long, all are released, and
        the method returns ``None``. A late caller has an eighth of the lease for decoding, but not
        beyond the half.
        """
    @overload
    def accept(self, decode: Callable[[bytes], T], ahead: bool = False) -> list[Message[T]] | None: ...
    def begin(self, message: Message[Any]) -> bool:
        """Begins a message that was accepted ``ahead``. Returns false if it is late, and must not
        be used. May be repeated for the last message."""
    def rest(self, messages: Iterable[Message[Any]]) -> list[Lease]:
        """Returns the leases of those messages, accepted ``ahead``, that were not released. The
        caller has to release them. No message can begin afterwards."""

class Draft:
    """An encoded payload with its options. Delays are in seconds, zero or more; priorities are 0 to
    255.

    ``within`` is the time in seconds for which the message holds the key ``unique``; without it,
    the message holds the key until it has ended.
    """

    def __init__(
        self,
        payload: bytes,
        *,
        after: float | None = None,
        at: datetime | None = None,
        metadata: dict[str, str] | None = None,
        key: str | None = None,
        priority: int = 0,
        unique: str | None = None,
        within: float | None = None,
        replaces: bool = False,
        columns: dict[str, str] | None = None,
    ) -> None: ...

class Db:
    """A database with Trunkline in it. Errors of the library are raised as the classes in
    ``trunkline.errors``.

    With a bridge, each verb returns a future of the bridge's loop. Without a bridge, the thread
    waits and checks for signals. In a fork of the process that connected, each verb raises
    ``RuntimeError``.
    """

    @overload
    @staticmethod
    def connect(bridge: Bridge, url: str) -> Awaitable[Db]:
        """Connects to a URL or a connection string of libpq. Raises if the database cannot be
        reached now."""
    @overload
    @staticmethod
    def connect(bridge: None, url: str) -> Db: ...
    @property
    def schema(self) -> str:
        """The name of the schema that contains the queues."""
    @overload
    def migrate(self, bridge: Bridge) -> Awaitable[int]:
        """Migrates the schema to this library's version, in one transaction. Returns the number of
        applied steps."""
    @overload
    def migrate(self, bridge: None) -> int: ...
    @overload
    def create_queue(self, bridge: Bridge, name: str, payload: str, named: dict[str, Any]) -> Awaitable[None]:
        """Creates a queue with payloads of a column type. Does nothing if it exists with the same
        settings.

        ``named`` are the settings by name; ``lease`` and ``aging`` are seconds. Raises
        ``TypeError`` for an unknown setting.
        """
    @overload
    def create_queue(self, bridge: None, name: str, payload: str, named: dict[str, Any]) -> None: ...
    @overload
    def alter_queue(self, bridge: Bridge, name: str, named: dict[str, Any]) -> Awaitable[None]:
        """Changes the named settings of a queue. Raises ``ValueError`` for ``priorities`` and
        ``uniqueness``, which are fixed."""
    @overload
    def alter_queue(self, bridge: None, name: str, named: dict[str, Any]) -> None: ...
    @overload
    def drop_queue(self, bridge: Bridge, name: str) -> Awaitable[None]:
        """Drops a queue with its messages, its dead letters and its archive."""
    @overload
    def drop_queue(self, bridge: None, name: str) -> None: ...
    @overload
    def pause_queue(self, bridge: Bridge, name: str) -> Awaitable[None]:
        """Pauses a queue: messages can be enqueued, but not dequeued."""
    @overload
    def pause_queue(self, bridge: None, name: str) -> None: ...
    @overload
    def resume_queue(self, bridge: Bridge, name: str) -> Awaitable[None]:
        """Resumes a paused queue, and wakes its consumers."""
    @overload
    def resume_queue(self, bridge: None, name: str) -> None: ...
    @overload
    def limit_queue(self, bridge: Bridge, name: str, max_leased: int | None, of_all: tuple[float | None, int | None], of_keys: tuple[float | None, int | None]) -> Awaitable[None]:
        """Sets all limits of a queue; ``None`` means no limit. ``of_all`` and ``of_keys`` are
        messages per second, and burst."""
    @overload
    def limit_queue(self, bridge: None, name: str, max_leased: int | None, of_all: tuple[float | None, int | None], of_keys: tuple[float | None, int | None]) -> None: ...
    @overload
    def list_queues(self, bridge: Bridge) -> Awaitable[list[dict[str, Any]]]:
        """Returns the descriptions of all queues, by name."""
    @overload
    def list_queues(self, bridge: None) -> list[dict[str, Any]]: ...
    @overload
    def describe_queue(self, bridge: Bridge, name: str) -> Awaitable[list[dict[str, Any]]]:
        """Returns a list with the description of one queue. Raises ``NoQueue``."""
    @overload
    def describe_queue(self, bridge: None, name: str) -> list[dict[str, Any]]: ...
    @overload
    def queue(self, bridge: Bridge, name: str) -> Awaitable[Queue]:
        """Opens a queue. Raises ``NoQueue``. The caller checks the column type."""
    @overload
    def queue(self, bridge: None, name: str) -> Queue: ...
    @overload
    def schedules(self, bridge: Bridge) -> Awaitable[list[dict[str, Any]]]:
        """Returns all schedules, by name."""
    @overload
    def schedules(self, bridge: None) -> list[dict[str, Any]]: ...
    @overload
    def pause_schedule(self, bridge: Bridge, name: str) -> Awaitable[None]:
        """Pauses a schedule: it makes no ticks until it is resumed."""
    @overload
    def pause_schedule(self, bridge: None, name: str) -> None: ...
    @overload
    def resume_schedule(self, bridge: Bridge, name: str) -> Awaitable[None]:
        """Resumes a schedule from its next tick on."""
    @overload
    def resume_schedule(self, bridge: None, name: str) -> None: ...
    @overload
    def drop_schedule(self, bridge: Bridge, name: str) -> Awaitable[None]:
        """Drops a schedule. Its messages stay."""
    @overload
    def drop_schedule(self, bridge: None, name: str) -> None: ...
    @overload
    def fire_schedule(self, bridge: Bridge, name: str) -> Awaitable[int]:
        """Enqueues the message of a schedule now, and returns the message's id."""
    @overload
    def fire_schedule(self, bridge: None, name: str) -> int: ...

class Queue:
    """A queue of payloads as bytes, in PostgreSQL's binary format of the column. The codecs are
    written in Python.

    Bridges and errors work as in ``Db``. Verbs that end leases raise ``LeaseLost`` for lost leases,
    but still apply to the other leases.
    """

    @property
    def name(self) -> str:
        """The queue's name."""
    @property
    def column(self) -> str:
        """The type of the payloads, as PostgreSQL names it."""
    @property
    def lease_seconds(self) -> float:
        """The length of a lease, in seconds."""
    @overload
    def enqueue(self, bridge: Bridge, message: bytes | Draft) -> Awaitable[Enqueued]:
        """Enqueues a payload or a draft. Returns its id and its outcome after the commit.

        With a unique key, the id may be another message's.
        """
    @overload
    def enqueue(self, bridge: None, message: bytes | Draft) -> Enqueued: ...
    @overload
    def enqueue_many(self, bridge: Bridge, messages: Sequence[bytes | Draft]) -> Awaitable[list[Enqueued]]:
        """Enqueues all messages in one transaction. Returns their ids and outcomes in order."""
    @overload
    def enqueue_many(self, bridge: None, messages: Sequence[bytes | Draft]) -> list[Enqueued]: ...
    @overload
    def send_direct(self, bridge: Bridge, message: bytes | Draft) -> Awaitable[Enqueued]:
        """Sends a message inside a notification. If no consumer waits for direct messages, enqueues
        it."""
    @overload
    def send_direct(self, bridge: None, message: bytes | Draft) -> Enqueued: ...
    @overload
    def take(self, bridge: Bridge, n: int) -> tuple[Awaitable[Offer], Call]:
        """Takes at most ``n`` messages, oldest first; none if none is due. If the caller is
        cancelled, it must call ``Call.leave``."""
    @overload
    def take(self, bridge: None, n: int) -> Offer: ...
    @overload
    def lease(self, bridge: Bridge, n: int, lease: float | None = None) -> tuple[Awaitable[Offer], Call]:
        """Leases at most ``n`` messages for ``lease`` seconds, by default the queue's lease
        time."""
    @overload
    def lease(self, bridge: None, n: int, lease: float | None = None) -> Offer: ...
    @overload
    def ack(self, bridge: Bridge, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> Awaitable[None]:
        """Acknowledges messages."""
    @overload
    def ack(self, bridge: None, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> None: ...
    @overload
    def archive(self, bridge: Bridge, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> Awaitable[None]:
        """Acknowledges messages and keeps them in the archive."""
    @overload
    def archive(self, bridge: None, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> None: ...
    @overload
    def release(self, bridge: Bridge, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> Awaitable[None]:
        """Releases messages: they are due again immediately, and the attempt is not counted."""
    @overload
    def release(self, bridge: None, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> None: ...
    def release_unheard(self, of: Message[Any] | Lease | Iterable[Message[Any] | Lease]) -> None:
        """Releases messages in the background, and does not report the outcome. If that fails,
        tries again until the leases end."""
    @overload
    def retry(self, bridge: Bridge, of: Message[Any] | Lease | Iterable[Message[Any] | Lease], after: float, error: str) -> Awaitable[None]:
        """Makes messages due again after ``after`` seconds, or dead letters after their last
        attempt."""
    @overload
    def retry(self, bridge: None, of: Message[Any] | Lease | Iterable[Message[Any] | Lease], after: float, error: str) -> None: ...
    @overload
    def bury(self, bridge: Bridge, of: Message[Any] | Lease | Iterable[Message[Any] | Lease], reason: str) -> Awaitable[None]:
        """Makes messages dead letters immediately."""
    @overload
    def bury(self, bridge: None, of: Message[Any] | Lease | Iterable[Message[Any] | Lease], reason: str) -> None: ...
    @overload
    def extend(self, bridge: Bridge, of: Message[Any] | Lease | Iterable[Message[Any] | Lease], by: float) -> Awaitable[None]:
        """Makes leases end ``by`` seconds from now: more than zero, at most 365 days."""
    @overload
    def extend(self, bridge: None, of: Message[Any] | Lease | Iterable[Message[Any] | Lease], by: float) -> None: ...
    @overload
    def stats(self, bridge: Bridge) -> Awaitable[dict[str, Any]]:
        """Returns the counts of the queue."""
    @overload
    def stats(self, bridge: None) -> dict[str, Any]: ...
    @overload
    def purge(self, bridge: Bridge) -> Awaitable[int]:
        """Deletes due, delayed and leased messages. Returns their number. Dead letters and the
        archive stay."""
    @overload
    def purge(self, bridge: None) -> int: ...
    @overload
    def prune(self, bridge: Bridge, age: float) -> Awaitable[int]:
        """Deletes messages that were archived more than ``age`` seconds ago. Returns their
        number."""
    @overload
    def prune(self, bridge: None, age: float) -> int: ...
    @overload
    def schedule(self, bridge: Bridge, schedule: object, payload: bytes) -> Awaitable[bool]:
        """Declares a schedule with a payload. Returns true if something changed."""
    @overload
    def schedule(self, bridge: None, schedule: object, payload: bytes) -> bool: ...
    @overload
    def shift(self, bridge: Bridge, by: float) -> Awaitable[int]:
        """Simulates the passing of ``by`` seconds for the queue's messages, for tests."""
    @overload
    def shift(self, bridge: None, by: float) -> int: ...
    def consumer(self, wait: str | float) -> Consumer:
        """Creates a consumer. ``wait`` is "adaptive", "notify", "poll", or the seconds between
        polls (at least 0.001)."""
    @overload
    def dead_letters(self, bridge: Bridge, after: int, n: int) -> Awaitable[list[dict[str, Any]]]:
        """Returns at most ``n`` dead letters, by id, after the id ``after``."""
    @overload
    def dead_letters(self, bridge: None, after: int, n: int) -> list[dict[str, Any]]: ...
    @overload
    def archived(self, bridge: Bridge, after: int, n: int) -> Awaitable[list[dict[str, Any]]]:
        """Returns at most ``n`` archived messages, by id, after the id ``after``."""
    @overload
    def archived(self, bridge: None, after: int, n: int) -> list[dict[str, Any]]: ...
    @overload
    def peek(self, bridge: Bridge, n: int) -> Awaitable[list[dict[str, Any]]]:
        """Returns the first ``n`` messages by due time, without changing them."""
    @overload
    def peek(self, bridge: None, n: int) -> list[dict[str, Any]]: ...
    @overload
    def find(self, bridge: Bridge, id: int) -> Awaitable[list[dict[str, Any]]]:
        """Returns a list with the message, or an empty list."""
    @overload
    def find(self, bridge: None, id: int) -> list[dict[str, Any]]: ...
    @overload
    def replay(self, bridge: Bridge, ids: list[int] | None) -> Awaitable[int]:
        """Makes dead letters due again now, or all of them if given ``None``. Returns their
        number."""
    @overload
    def replay(self, bridge: None, ids: list[int] | None) -> int: ...
    @overload
    def discard(self, bridge: Bridge, ids: list[int] | None) -> Awaitable[int]:
        """Deletes dead letters, or all of them if given ``None``. Returns their number."""
    @overload
    def discard(self, bridge: None, ids: list[int] | None) -> int: ...
    @overload
    def cancel(self, bridge: Bridge, ids: list[int]) -> Awaitable[list[int]]:
        """Deletes waiting and leased messages. Returns the ids of the deleted messages."""
    @overload
    def cancel(self, bridge: None, ids: list[int]) -> list[int]: ...
    @overload
    def reschedule(self, bridge: Bridge, ids: list[int], due: float | datetime) -> Awaitable[list[int]]:
        """Makes waiting messages due after a number of seconds, at most 36,500 days, or at a time.

        If the time has passed, they are due immediately. Returns the ids of the changed messages.
        """
    @overload
    def reschedule(self, bridge: None, ids: list[int], due: float | datetime) -> list[int]: ...

class Consumer:
    """Waits until messages of a queue are due. One call at a time waits; concurrent calls queue
    up."""

    @overload
    def next(self, bridge: Bridge, n: int, takes: bool, longest: float | None = None, lease: float | None = None) -> tuple[Awaitable[Offer], Call]:
        """Waits at most ``longest`` seconds, by default without a limit, and dequeues at most ``n``
        messages.

        Takes them if ``takes`` is true, otherwise leases them for ``lease`` seconds, by default the
        queue's lease time. Returns an empty offer if none was due in time.
        """
    @overload
    def next(self, bridge: None, n: int, takes: bool, longest: float | None = None, lease: float | None = None) -> Offer: ...
    @overload
    def receive_direct(self, bridge: Bridge) -> tuple[Awaitable[Offer], Call]:
        """Waits for one message, which may arrive inside a notification."""
    @overload
    def receive_direct(self, bridge: None) -> Offer: ...
    @overload
    def close_direct(self, bridge: Bridge) -> Awaitable[None]:
        """Stops waiting for direct messages, and waits, for about five seconds at most, until a
        message that is on its way is enqueued. Does nothing if another call still waits."""
    @overload
    def close_direct(self, bridge: None) -> None: ...

class Delivery:
    """A call of a handler, with its messages. If it is dropped without an answer, it counts as a
    failure."""

    @property
    def task(self) -> int:
        """The task's index in the worker."""
    @property
    def nr(self) -> int:
        """The call's number, unique in its process."""
    def begin(self) -> bool:
        """Begins the handler's time limit. Returns false if the handler must not begin: the lease
        is lost, the worker has given up on the call, or the call waited too long for the event
        loop. The messages are then to be released."""
    def end(self) -> None:
        """Ends the handler's time limit. A handler's thread or coroutine calls this method, because
        the event loop, which its outcome passes, may be blocked."""
    @property
    def payload(self) -> bytes:
        """The payload of the first message."""
    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the first message."""
    @property
    def has_metadata(self) -> bool:
        """True if the first message has metadata."""
    @property
    def attempts(self) -> int:
        """The counted attempts of the first message, including this one."""
    def message(self, payload: T) -> Message[T]:
        """Returns the first message with a decoded payload."""
    def messages(self) -> list[Message[bytes]]:
        """Returns all messages, with payloads as bytes."""
    @overload
    def extend(self, bridge: Bridge, by: float) -> Awaitable[None]:
        """Makes the lease end ``by`` seconds from now: more than zero, at most 365 days. Not for
        batches."""
    @overload
    def extend(self, bridge: None, by: float) -> None: ...
    @overload
    def release(self, bridge: Bridge) -> Awaitable[None]:
        """Releases the message: it is due again immediately, and the attempt is not counted. Not
        for batches."""
    @overload
    def release(self, bridge: None) -> None: ...
    @overload
    def ends_elsewhere(self, bridge: Bridge) -> Awaitable[None]:
        """Leaves the acknowledgement to the handler, which uses another driver's transaction. Not
        for batches."""
    @overload
    def ends_elsewhere(self, bridge: None) -> None: ...

class Station:
    """A worker for several tasks in one event loop. ``wait`` is as in ``Queue.consumer``.

    If ``drains`` is true, it ends once no message is due. If ``reports`` is true, it reports its
    state in the table ``trunkline.worker``.
    """

    def __init__(self, tasks: list[dict[str, Any]], concurrency: int, wait: str | float, drains: bool, reports: bool) -> None: ...
    def fileno(self) -> int:
        """Returns the descriptor that the loop watches. It is readable when there are new events.
        Raises ``RuntimeError`` after ``close``."""
    def close(self) -> None:
        """Closes the descriptor, when the loop no longer watches it. Calls can still be
        answered."""
    @overload
    def run(self, bridge: Bridge) -> Awaitable[dict[str, int]]:
        """Works until it is stopped, and then shuts down. Returns the counts of outcomes. Call it
        once."""
    @overload
    def run(self, bridge: None) -> dict[str, int]: ...
    def stop(self) -> None:
        """Starts the shutdown."""
    def news(self) -> list[Delivery | tuple[Literal["lost", "late", "over"], int]]:
        """Returns new deliveries, and ("lost", "late" or "over", number) for running calls.

        "lost" means that the call's lease is lost, or that the worker will soon abandon the call.
        "late" means that the call's handler has taken too long, and the call waits for an answer.
        "over" means that the caller of the call has left.
        """
    def settle(
        self, answers: Sequence[tuple[Delivery, tuple[str, float, str] | None | list[tuple[str, float, str] | None]]], ends: bool
    ) -> None:
        """Answers calls: each delivery with an outcome for its message, or with a list of outcomes
        for its messages.

        ``None`` means done; a tuple is kind ("retry", "after", "dead", "release" or "cancelled"),
        seconds and reason. An outcome that cannot be read is a failure of its message. If ``ends``
        is true, a cancelled message is released.
        """

def schema_of(url: str) -> str:
    """Returns the schema that a connection to this address would use: that of the address, of its
    service or of the environment. Raises ``TrunklineError`` for an address that is not valid."""

def test_database() -> str:
    """Creates an empty database on a server that the tests of this process share. Returns its
    connection string."""

class Exit:
    """The last exit handler of the interpreter. Register it with ``atexit``, and keep no reference
    to it: once ``atexit`` has called all handlers, it drops this one, and from then on no thread
    returns from a call."""

    def __init__(self) -> None: ...
    def __call__(self) -> None: ...

def begin_logs() -> bool:
    """Creates this process's list of the library's events. Returns false if the list already
    existed."""

def log_levels(levels: dict[str, int]) -> None:
    """Sets the minimum level of the events that each logger wants."""

def next_logs(longest: float) -> tuple[list[tuple[int, str, str, float, str, int, dict[str, Any]]], int] | None:
    """Waits at most ``longest`` seconds for events. Returns the events that have arrived (level,
    logger, text, time, file, line, fields) and the number of dropped events. Returns ``None`` after
    the end, once all events were returned."""

def end_logs() -> None:
    """Stops accepting events."""

def test_logs(count: int, warns: bool) -> None:
    """Logs a number of warnings, or traces, of the logger ``trunkline.test``, for tests."""


class Cluster:
    """A temporary PostgreSQL, which ends with ``stop`` or with the process. Creating it starts the
    server."""

    def __init__(self) -> None: ...
    @property
    def url(self) -> str:
        """The connection string of the server's database ``postgres``."""
    def stop(self) -> None:
        """Stops the server and removes its data. Does nothing if the server was stopped before."""
