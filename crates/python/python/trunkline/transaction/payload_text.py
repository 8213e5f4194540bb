"""Converts payloads between the bytes of the package's codecs and the text that PostgreSQL reads
and writes in a statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from uuid import UUID

from trunkline.codec import Codec
from trunkline.errors import BadPayload, WrongType

T = TypeVar("T")

_TO_TEXT: dict[str, Callable[[bytes], str]] = {
    "jsonb": bytes.decode,
    "json": bytes.decode,
    "text": bytes.decode,
    "bytea": lambda payload: "\\x" + payload.hex(),
    "int8": lambda payload: str(int.from_bytes(payload, "big", signed=True)),
    "uuid": lambda payload: str(UUID(bytes=payload)),
}
_TO_BYTES: dict[str, Callable[[str], bytes]] = {
    "jsonb": str.encode,
    "json": str.encode,
    "text": str.encode,
    "bytea": bytes.fromhex,
    "int8": lambda text: int(text).to_bytes(8, "big", signed=True),
    "uuid": lambda text: UUID(text).bytes,
}
#: The expressions that return the column `payload` as text. `encode` makes the text of bytes
#: independent of the session's `bytea_output`.
_COLUMN = {"bytea": "pg_catalog.encode(cast(payload as pg_catalog.bytea), 'hex')"}


class PayloadText(Generic[T]):
    """A codec that converts payloads to and from text."""

    def __init__(self, codec: Codec[T]) -> None:
        if codec.column not in _TO_TEXT:
            raise WrongType(f"a codec for {codec.column} cannot be used in your transaction; the supported columns are {', '.join(_TO_TEXT)}")
        self._codec = codec
        #: The expression for a payload in a statement; `read` reads its text.
        self.column = _COLUMN.get(codec.column, "payload")
        self._to_text, self._to_bytes = _TO_TEXT[codec.column], _TO_BYTES[codec.column]

    def write(self, payload: T) -> str:
        """Returns the payload as text for a statement. Raises `BadPayload` if it cannot be written
        or has a zero byte."""
        text = self._to_text(self._codec.encode(payload))
        if "\0" in text:
            raise BadPayload("text in PostgreSQL cannot contain a zero byte: use a queue of bytes")
        return text

    def read(self, text: str) -> T:
        """Returns the payload of a text. Raises the codec's exception if it cannot be read."""
        return self._codec.decode(self._to_bytes(text))
