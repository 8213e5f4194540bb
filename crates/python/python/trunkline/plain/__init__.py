"""Converts values of annotated types to JSON and back, using only the standard library, and checks
them in both directions.

Supports dataclasses, typed dictionaries, enumerations, unions, and lists, tuples, sets and
dictionaries of these. A type whose values would not come back unchanged is refused at its
declaration, such a value before it is enqueued. Pydantic models and msgspec structs are read by
their own libraries.
"""

from .form import Form, form
from .mismatch import Mismatch
from .write import writable

__all__ = ["Form", "Mismatch", "form", "writable"]
