"""The error for a value that is not of its type."""

from __future__ import annotations


class Mismatch(ValueError):
    """A value is not of its type. The text says where in the payload."""

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(f"at {path.lstrip('.') or 'the top'}: {what}")
        self.what = what
        self.path = path

    def within(self, step: str) -> Mismatch:
        """Returns the same mismatch one step further out: ``step`` goes before its path."""
        return Mismatch(self.what, step + self.path)


def wrong(value: object, expected: str) -> Mismatch:
    """Returns the mismatch of a value whose type is not the expected one."""
    return Mismatch(f"{expected} expected, not {type(value).__name__}")
