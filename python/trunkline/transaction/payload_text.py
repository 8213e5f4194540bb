"""Payloads as PostgreSQL reads and writes them in a statement: texts."""

from __future__ import annotations

import json
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class PayloadText(Protocol[T]):
    def write(self, payload: T) -> str: ...
    def read(self, text: str) -> T: ...


class _Json(Generic[T]):
    def write(self, payload: T) -> str:
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))

    def read(self, text: str) -> T:
        value: T = json.loads(text)
        return value


def text_of(payload: Any) -> PayloadText[Any]:
    return _Json()
