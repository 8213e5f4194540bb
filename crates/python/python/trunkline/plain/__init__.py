"""Values of annotated types in JSON and back, with the standard library alone: each is checked on both ways.

For dataclasses, typed dictionaries, enumerations, unions, and lists, tuples, sets and dictionaries of them. What would not come back as it
was is refused: a type at its declaration, a value before it is enqueued. Pydantic models and msgspec structs are read by their own libraries.
"""

from .form import Form, form
from .mismatch import Mismatch
from .write import writable

__all__ = ["Form", "Mismatch", "form", "writable"]
