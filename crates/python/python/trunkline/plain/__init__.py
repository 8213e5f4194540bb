"""Converts values of annotated types to JSON and back, using only the standard library, and checks
them in both directions.

Supports dataclasses, typed dictionaries, enumerations, unions, and lists, tuples, sets and
dictionaries of these. If values of a type would not come back unchanged, the type is refused when
it is declared. A single such value is refused before it is enqueued. Pydantic models and msgspec
structs are read by their own libraries.
"""

from .form import Form, form
from .mismatch import Mismatch
from .write import writable

__all__ = ["Form", "Mismatch", "form", "writable"]
