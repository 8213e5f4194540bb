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
from .plain.write import without_exponents, write
from .unchanged import check_unchanged

T = TypeVar("T")


@runtime_checkable
class Codec(Protocol[T]):
    """Encodes payloads as bytes, and decodes bytes to payloads. Implement it for your own types.

    The bytes are in PostgreSQL's binary format of the column. For ``jsonb`` and ``json`` this is
    the text in UTF-8; for ``bytea`` and ``text`` it is the value itself. If ``decode`` raises an
    exception, only that message's attempt fails, with the exception's text as the error.
    """

    @property
    def column(self) -> str:
        """The type of the queue's payloads, as PostgreSQL names it."""
        ...

    def encode(self, payload: T, /) -> bytes:
        """Returns the payload's bytes. Raises :class:`BadPayload` for a value that the column
        cannot store."""
        ...

    def decode(self, payload: bytes, /) -> T:
        """Returns the payload of the bytes. An exception fails the message's attempt, with its text
        as the error."""
        ...


def _refused(payload: object, column: str, why: object) -> BadPayload:
    return BadPayload(f"{type(payload).__name__} cannot be written as {column}: {why}")


class Bytes:
    """The codec of ``bytes``, stored unchanged in ``bytea``."""

    column = "bytea"

    def encode(self, payload: object, /) -> bytes:
        """Returns the bytes of ``bytes``, ``bytearray`` or ``memoryview``. Raises
        :class:`BadPayload` for other types."""
        if type(payload) is bytes:
            return payload
        if isinstance(payload, (bytearray, memoryview)):
            return bytes(cast("bytearray", payload))
        raise _refused(payload, self.column, "bytes are expected")

    def decode(self, payload: bytes, /) -> bytes:
        """Returns the bytes unchanged."""
        return payload


class Text:
    """The codec of ``str``, stored in ``text``."""

    column = "text"

    def encode(self, payload: object, /) -> bytes:
        """Returns the text in UTF-8. Raises :class:`BadPayload` for other types, zero bytes and
        lone surrogates."""
        if not isinstance(payload, str):
            raise _refused(payload, self.column, "a str is expected")
        if "\0" in payload:
            raise _refused(payload, self.column, "text in PostgreSQL cannot contain a zero byte: use a queue of bytes")
        try:
            return payload.encode()
        except UnicodeEncodeError as error:
            raise _refused(payload, self.column, error) from None

    def decode(self, payload: bytes, /) -> str:
        """Returns the text."""
        return payload.decode()


class Int:
    """The codec of ``int`` with 64 bits, stored in ``int8``."""

    column = "int8"

    def encode(self, payload: object, /) -> bytes:
        """Returns the number in eight bytes. Raises :class:`BadPayload` for other types, and for
        numbers that do not fit into 64 bits with a sign."""
        if not isinstance(payload, int) or isinstance(payload, bool):
            raise _refused(payload, self.column, "an int is expected")
        try:
            return payload.to_bytes(8, "big", signed=True)
        except OverflowError:
            raise _refused(payload, self.column, "the number is not from -2**63 to 2**63 - 1") from None

    def decode(self, payload: bytes, /) -> int:
        """Returns the number."""
        return int.from_bytes(payload, "big", signed=True)


class Uuid:
    """The codec of ``uuid.UUID``, stored in ``uuid``."""

    column = "uuid"

    def encode(self, payload: object, /) -> bytes:
        """Returns the sixteen bytes of a UUID. Raises :class:`BadPayload` for other types."""
        if not isinstance(payload, UUID):
            raise _refused(payload, self.column, "a UUID is expected")
        return payload.bytes

    def decode(self, payload: bytes, /) -> UUID:
        """Returns the UUID."""
        return UUID(bytes=payload)


#: Matches a zero byte in JSON, but not an escaped backslash before the characters u0000.
_ZERO = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


#: The number of levels that can always be read, and the number of calls by which a handler's stack
#: may be deeper than the stack of the program that enqueues.
_SHALLOW, _MARGIN = 50, 100


def _deeper(calls: int, then: Callable[[], object]) -> None:
    """Calls ``then`` from a stack that is ``calls`` calls deeper."""
    if calls:
        _deeper(calls - 1, then)
    else:
        then()


def _check_depth(written: bytes, decode: Callable[[bytes], object]) -> None:
    """Raises an error if JSON is nested too deeply for ``decode`` in a handler."""
    # A short text cannot be nested deeply. So only long texts are searched for brackets, and only
    # deeply nested texts are read back.
    if len(written) > 2 * _SHALLOW and written.count(b"{") + written.count(b"[") > _SHALLOW < depth(written.decode()):
        _deeper(_MARGIN, lambda: decode(written))


class Json:
    """The codec of any type with a JSON form, stored in ``jsonb``. Values are checked against the
    annotated type when they are written and when they are read, and come back as that type. The
    contents of ``Any``, ``dict`` and ``list`` come back as their JSON: tuples as lists, times and
    keys as strings."""

    column = "jsonb"

    def __init__(self, of: Any = Any) -> None:
        made = None if of is Any or of is object else plain.form(of)
        self._read = None if made is None else made.read
        self._check = None if made is None else made.check

    def encode(self, payload: Any, /) -> bytes:
        """Returns the value as JSON in UTF-8.

        Raises :class:`BadPayload` for a value that is not of the annotated type or has no form in
        JSON. Also raises it for a zero byte in a string, and for a value that is nested too deeply
        to be read.
        """
        try:
            if self._check is not None:
                self._check(payload)
            text = write(payload)
            if "\\u0000" in text and _ZERO.search(text):
                raise ValueError("text in PostgreSQL cannot contain a zero byte")
            written = text.encode()
            _check_depth(written, self.decode)
            return written
        except (TypeError, ValueError, RecursionError) as error:
            raise _refused(payload, self.column, error) from None

    def decode(self, payload: bytes | str, /) -> Any:
        """Returns the value of the annotated type. Raises ``ValueError`` for JSON that is not of
        the type or nested too deeply."""
        try:
            value = json.loads(payload)
            return value if self._read is None else self._read(value)
        except RecursionError:
            raise plain.Mismatch("nested too deeply for Python, which reads about 300 levels of objects, or 900 of lists") from None


#: Matches a number with a positive exponent, or text that looks like one.
_EXPONENT = re.compile(rb"\d[eE]\+?\d")


def _no_number(name: str) -> object:
    raise ValueError(f"{name} cannot be stored: JSON has no NaN and no infinities")


class Validated:
    """The common part of the codecs of validating libraries. Before a value is accepted, the
    library itself reads it back once, and the result has to be unchanged."""

    column = "jsonb"
    _write: Callable[[Any], bytes]
    _read: Callable[[bytes], Any]
    #: If set, only direct instances of this class are accepted: an instance of a subclass would
    #: come back as an instance of this class.
    _of: type | None = None

    def encode(self, payload: Any, /) -> bytes:
        """Returns the value as JSON. Raises :class:`BadPayload` if the library refuses it, cannot
        read it back, or reads back anything else."""
        if self._of is not None and type(payload) is not self._of:
            raise _refused(payload, self.column, f"a {self._of.__name__} is expected")
        try:
            written = _storable(self._write(payload))
            check_unchanged(payload, self._read(written))
            _check_depth(written, self._read)
        except Exception as error:
            raise _refused(payload, self.column, error) from None
        return written

    def decode(self, payload: bytes, /) -> Any:
        """Returns the validated value. Raises the library's validation error."""
        return self._read(payload)


def _storable(written: bytes) -> bytes:
    """Returns JSON as ``jsonb`` keeps it: numbers without exponents. Raises ``ValueError`` for a
    zero byte and for numbers that are not JSON."""
    if b"\\u0000" in written and _ZERO.search(written.decode()):
        raise ValueError("text in PostgreSQL cannot contain a zero byte")
    if b"NaN" in written or b"Infinity" in written:
        json.loads(written, parse_constant=_no_number)
    return without_exponents(written.decode()).encode() if _EXPONENT.search(written) else written


class Pydantic(Validated):
    """The codec of pydantic 2 models, and of types that contain a model, stored in ``jsonb``.
    Values are validated when they are written and when they are read."""

    def __init__(self, of: Any) -> None:
        self._write, self._read = models.codec_functions(of)
        self._of = of if models.fields_of(of) is not None else None


class Msgspec(Validated):
    """The codec of msgspec structs, stored in ``jsonb``. Values are validated when they are written
    and when they are read."""

    def __init__(self, of: Any) -> None:
        library: Any = import_module("msgspec").json
        self._write = library.Encoder().encode
        self._read = library.Decoder(of).decode
        self._of = of if isinstance(of, type) and hasattr(of, "__struct_fields__") else None


def _has(of: Any, mark: str) -> bool:
    """Returns true if the type, or a type within it, has the attribute ``mark``."""
    inner = getattr(of, "__args__", ())
    return isinstance(of, type) and hasattr(of, mark) or any(_has(one, mark) for one in inner)


def codec_of(of: Any) -> Codec[Any]:
    """Returns the codec of a type. A codec is returned as it is."""
    scalars: dict[Any, Codec[Any]] = {bytes: Bytes(), str: Text(), int: Int(), UUID: Uuid()}
    if not isinstance(of, type) and isinstance(of, Codec):
        return cast("Codec[Any]", of)
    try:
        if of in scalars:
            return scalars[of]
    except TypeError:
        pass  # the type cannot be hashed
    if _has(of, "__pydantic_validator__"):
        return Pydantic(of)
    if _has(of, "__struct_fields__"):
        return Msgspec(of)
    return Json(of)
