"""Payloads as they are stored: a codec for each type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast, runtime_checkable
from uuid import UUID

from . import models, plain
from ._trunkline import depth
from .errors import BadPayload
from .plain.write import write

T = TypeVar("T")


@runtime_checkable
class Codec(Protocol[T]):
    """Makes bytes of payloads, and payloads of bytes. Implement it for types of your own.

    The bytes are Postgres' binary format of the column: of ``jsonb`` and ``json`` the text in UTF-8, of ``bytea`` and ``text``
    themselves. What ``decode`` raises an exception for fails its attempt with that text, and no other message.
    """

    @property
    def column(self) -> str:
        """The type of the queue's payloads, as Postgres names it."""
        ...

    def encode(self, payload: T, /) -> bytes:
        """Returns the payload's bytes. Raises :class:`BadPayload` for a value that the column cannot store."""
        ...

    def decode(self, payload: bytes, /) -> T:
        """Returns the payload of the bytes. An exception fails the message's attempt, with its text as the error."""
        ...


def _refused(payload: object, column: str, why: object) -> BadPayload:
    return BadPayload(f"{type(payload).__name__} cannot be written as {column}: {why}")


class Bytes:
    """``bytes`` as they are, in ``bytea``."""

    column = "bytea"

    def encode(self, payload: object, /) -> bytes:
        """Returns the bytes of ``bytes``, ``bytearray`` or ``memoryview``. Raises :class:`BadPayload` for other types."""
        if type(payload) is bytes:
            return payload
        if isinstance(payload, (bytearray, memoryview)):
            return bytes(cast("bytearray", payload))
        raise _refused(payload, self.column, "bytes are expected")

    def decode(self, payload: bytes, /) -> bytes:
        """Returns the bytes unchanged."""
        return payload


class Text:
    """``str`` in ``text``."""

    column = "text"

    def encode(self, payload: object, /) -> bytes:
        """Returns the text in UTF-8. Raises :class:`BadPayload` for other types, zero bytes and lone surrogates."""
        if not isinstance(payload, str):
            raise _refused(payload, self.column, "a str is expected")
        if "\0" in payload:
            raise _refused(payload, self.column, "PostgreSQL has no zero byte in a text: use a queue of bytes")
        try:
            return payload.encode()
        except UnicodeEncodeError as error:
            raise _refused(payload, self.column, error) from None

    def decode(self, payload: bytes, /) -> str:
        """Returns the text."""
        return payload.decode()


class Int:
    """``int`` of 64 bits, in ``int8``."""

    column = "int8"

    def encode(self, payload: object, /) -> bytes:
        """Returns the number in eight bytes. Raises :class:`BadPayload` for other types and numbers of more than 64 bits."""
        if not isinstance(payload, int) or isinstance(payload, bool):
            raise _refused(payload, self.column, "an int is expected")
        try:
            return payload.to_bytes(8, "big", signed=True)
        except OverflowError:
            raise _refused(payload, self.column, f"one of {payload.bit_length()} bits has more than 64") from None

    def decode(self, payload: bytes, /) -> int:
        """Returns the number."""
        return int.from_bytes(payload, "big", signed=True)


class Uuid:
    """``uuid.UUID`` in ``uuid``."""

    column = "uuid"

    def encode(self, payload: object, /) -> bytes:
        """Returns the sixteen bytes of a UUID. Raises :class:`BadPayload` for other types."""
        if not isinstance(payload, UUID):
            raise _refused(payload, self.column, "a UUID is expected")
        return payload.bytes

    def decode(self, payload: bytes, /) -> UUID:
        """Returns the UUID."""
        return UUID(bytes=payload)


#: A zero byte in JSON, and not a backslash before the characters u0000.
_ZERO = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


#: Levels that are read in any case; and how much deeper in calls a handler may be than the program that enqueues.
_SHALLOW, _MARGIN = 50, 100


def _deeper(calls: int, then: Callable[[], object]) -> None:
    """Calls it as many calls further down."""
    if calls:
        _deeper(calls - 1, then)
    else:
        then()


class Json:
    """Anything that has a form in JSON, in ``jsonb``; checked against the annotated type when it is written and when it is read, and read back
    as that. Of ``Any``, ``dict`` and ``list`` the contents are JSON's: tuples come back as lists, times and keys as texts."""

    column = "jsonb"

    def __init__(self, of: Any = Any) -> None:
        made = None if of is Any or of is object else plain.form(of)
        self._read = None if made is None else made.read
        self._check = None if made is None else made.check

    def encode(self, payload: Any, /) -> bytes:
        """Returns the value as JSON in UTF-8.

        Raises :class:`BadPayload` for a value that is not of the annotated type or has no form in JSON. Also raises it for a zero byte in a
        text, and for a value that is nested too deeply to be read.
        """
        try:
            if self._check is not None:
                self._check(payload)
            text = write(payload)
            if "\\u0000" in text and _ZERO.search(text):
                raise ValueError("PostgreSQL has no zero byte in a text")
            # A text is long before it is deep, and deep before it is too deep: few are looked through, and fewer are read back.
            if len(text) > 2 * _SHALLOW and self._read is not None and text.count("{") + text.count("[") > _SHALLOW < depth(text):
                _deeper(_MARGIN, lambda: self.decode(text))
            return text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise _refused(payload, self.column, error) from None

    def decode(self, payload: bytes | str, /) -> Any:
        """Returns the value of the annotated type. Raises ``ValueError`` for JSON that is not of the type or nested too deeply."""
        try:
            value = json.loads(payload)
            return value if self._read is None else self._read(value)
        except RecursionError:
            raise plain.Mismatch("nested too deeply for Python, which reads some 300 levels of objects, and some 900 of lists") from None


class Validated:
    """What the codecs of validating libraries share: whatever is accepted has been read back once, by the library itself."""

    column = "jsonb"
    _write: Callable[[Any], bytes]
    _read: Callable[[bytes], Any]
    #: Whose own instances are taken alone; an instance of a subclass would come back as one of this.
    _of: type | None = None

    def encode(self, payload: Any, /) -> bytes:
        """Returns the value as JSON. Raises :class:`BadPayload` if the library refuses it, or cannot read it back."""
        if self._of is not None and type(payload) is not self._of:
            raise _refused(payload, self.column, f"a {self._of.__name__} is expected")
        try:
            written = self._write(payload)
            self._read(written)
        except Exception as error:
            raise _refused(payload, self.column, error) from None
        return written

    def decode(self, payload: bytes, /) -> Any:
        """Returns the validated value. Raises the library's validation error."""
        return self._read(payload)


class Pydantic(Validated):
    """Models of pydantic 2, and types that have one within, in ``jsonb``; validated when they are written and when they are read."""

    def __init__(self, of: Any) -> None:
        self._write, self._read = models.codec_functions(of)
        self._of = of if models.is_model(of) else None


class Msgspec(Validated):
    """Structs of msgspec, in ``jsonb``; validated when they are written and when they are read."""

    def __init__(self, of: Any) -> None:
        library: Any = import_module("msgspec").json
        self._write = library.Encoder().encode
        self._read = library.Decoder(of).decode
        self._of = of if isinstance(of, type) and hasattr(of, "__struct_fields__") else None


def _has(of: Any, mark: str) -> bool:
    """Whether the type, or one within it, is marked so."""
    inner = getattr(of, "__args__", ())
    return isinstance(of, type) and hasattr(of, mark) or any(_has(one, mark) for one in inner)


def codec_of(of: Any) -> Codec[Any]:
    """The codec of a type, or the codec itself where it is one."""
    scalars: dict[Any, Codec[Any]] = {bytes: Bytes(), str: Text(), int: Int(), UUID: Uuid()}
    if not isinstance(of, type) and isinstance(of, Codec):
        return cast("Codec[Any]", of)
    try:
        if of in scalars:
            return scalars[of]
    except TypeError:
        pass  # of a type that cannot be hashed
    if _has(of, "__pydantic_validator__"):
        return Pydantic(of)
    if _has(of, "__struct_fields__"):
        return Msgspec(of)
    return Json(of)
