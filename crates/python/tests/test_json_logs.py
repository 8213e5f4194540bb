"""Each record of ``--log-json`` is one line of JSON with the record's own fields."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from trunkline.worker.logs import AsJson


class Silent:
    """An object whose text is not available."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def itself() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def written(extra: dict[Any, Any], **of: Any) -> dict[str, Any]:
    """Returns what a reader of JSON finds in the line of a record."""
    record = logging.getLogger("tasks").makeRecord("tasks", logging.WARNING, "tasks.py", 1, "late by %d s", (3,), of.get("error"), extra=extra, sinfo=of.get("stack"))
    line = AsJson().format(record)
    assert "\n" not in line

    def no_json(name: str) -> None:
        raise AssertionError(f"{name} is not JSON: {line}")

    found: dict[str, Any] = json.loads(line, parse_constant=no_json)
    return found


def test_extra_fields_replace_no_own_field() -> None:
    try:
        raise ValueError("the cause")
    except ValueError:
        error = sys.exc_info()
    own = {"time": 0, "level": "fine", "logger": 1, "exception": "none", "stack": "none"}
    found = written({**own, "order": 7}, error=error, stack="Stack (most recent call last):\n  one")
    assert found["time"].endswith("+00:00")
    assert (found["level"], found["logger"], found["message"], found["order"]) == ("warning", "tasks", "late by 3 s", 7)
    assert "ValueError: the cause" in found["exception"] and found["stack"].endswith("\n  one")
    assert written({"exception": "own"})["exception"] == "own", "without an exception, the name is free"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("took", float("nan"), "nan"),
        ("limit", float("inf"), "inf"),
        ("each", {"a": [float("nan")]}, "{'a': [nan]}"),
        ("pairs", {(1, 2): 3}, "{(1, 2): 3}"),
        ("it", itself(), "[[...]]"),
        ("silent", Silent(), "a Silent without a text"),
        ("number", 10**5000, "a int without a text"),
        ((1, 2), 3, 3),
    ],
    ids=["nan", "inf", "nan within", "key within", "cycle", "silent", "long", "key"],
)
def test_a_record_is_written_whatever_its_fields_are(name: Any, value: object, text: object) -> None:
    found = written({name: value, "order": {"id": 7}})
    assert found[str(name)] == text
    assert (found["message"], found["order"]) == ("late by 3 s", {"id": 7}), "other fields stay what they are"
