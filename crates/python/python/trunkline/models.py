"""Writes and reads pydantic models, and refuses models that could not be read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, get_args


def fields_of(of: Any) -> dict[str, Any] | None:
    """Returns the fields of a model class, or of a dataclass of pydantic; ``None`` for any other
    type."""
    if not isinstance(of, type):
        return None
    fields: dict[str, Any] | None = getattr(of, "model_fields", None) or getattr(of, "__pydantic_fields__", None)
    return {} if fields is None and hasattr(of, "__pydantic_validator__") else fields


def codec_functions(of: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Returns the functions that write and read a type. Raises a ``TypeError`` for a type whose
    values would not come back complete."""
    pydantic: Any = import_module("pydantic")
    adapter = pydantic.TypeAdapter(of)
    names: dict[str, Any] = {"round_trip": True, "by_alias": _by_alias(of)}
    if tuple(int(part) for part in pydantic.VERSION.split(".")[:2]) >= (2, 8):
        names["warnings"] = "error"  # about values that are not of the type
    write, read = adapter.dump_json, adapter.validate_json
    return lambda payload: write(payload, **names), read


def _by_alias(of: Any) -> bool:
    """Returns true if fields must be written under their aliases to be readable."""
    all_by_name, all_by_alias = True, True
    for model, name, field in _fields(of, set()):
        where = f"{model.__qualname__}.{name}"
        if field.exclude:
            raise TypeError(f"{where} is excluded when it is written, so it would not come back: payloads cannot be of this type")
        if _is_secret(field.annotation):
            raise TypeError(f"{where} is a secret, which pydantic writes as asterisks: use the wrapped type, or pass the name of the secret")
        config: dict[str, Any] = dict(getattr(model, "model_config", None) or getattr(model, "__pydantic_config__", None) or {})
        alias: Any = field.validation_alias
        may_name = alias is None or config.get("populate_by_name") or config.get("validate_by_name")
        accepted = {alias} if isinstance(alias, str) else {one for one in getattr(alias, "choices", ()) if isinstance(one, str)}
        all_by_name = all_by_name and bool(may_name)
        written: str = field.serialization_alias or name
        all_by_alias = all_by_alias and (written in accepted or written == name and bool(may_name))
    if not all_by_name and not all_by_alias:
        raise TypeError(f"{of!r} has different names for writing and reading: give each field one alias, or set validate_by_name=True")
    return not all_by_name


def _fields(of: Any, seen: set[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yields the fields of all models within a type."""
    fields = fields_of(of)
    if fields is not None:
        if of in seen:
            return
        seen.add(of)
        config: dict[str, Any] = getattr(of, "__pydantic_config__", None) or {}
        if config.get("extra") == "allow":
            raise TypeError(f"{of.__qualname__} allows values without a field, which pydantic does not write for a dataclass: use a model instead")
        for name, field in fields.items():
            yield of, name, field
            yield from _fields(field.annotation, seen)
    for inner in get_args(of):
        yield from _fields(inner, seen)


def _is_secret(of: Any) -> bool:
    pydantic: Any = import_module("pydantic")
    secrets = tuple(getattr(pydantic, name) for name in ("SecretStr", "SecretBytes", "Secret") if hasattr(pydantic, name))
    return isinstance(of, type) and issubclass(of, secrets) or any(_is_secret(inner) for inner in get_args(of))
