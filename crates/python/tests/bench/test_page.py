"""Checks that the page agrees with its rows, and that the rows are complete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BENCH = ROOT / "bench"


@pytest.fixture(autouse=True)
def _bench_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def rows() -> list[dict]:
    return json.loads((BENCH / "results.json").read_text())["rows"]


def test_the_page_is_written_from_the_rows() -> None:
    from bench.page import page

    assert (BENCH / "results.md").read_text() == page(json.loads((BENCH / "results.json").read_text()))


def test_nothing_was_lost_or_doubled_by_ours() -> None:
    ours = [row for row in rows() if row["contender"].startswith("trunkline")]
    assert {row["workload"] for row in ours} >= {"tasks", "handler", "batches", "alone"}
    for row in ours:
        assert all(round["lost"] == 0 and round.get("doubled", 0) == 0 for round in row["rounds"]), row["workload"]


def test_contenders_are_in_every_possible_comparison() -> None:
    sys.modules.pop("bench.contenders", None)
    from bench.contenders import MODULES

    there = {(row["workload"], row["contender"]) for row in rows()}
    for name in MODULES:
        assert ("tasks", name) in there and ("alone", name) in there
    assert {name for workload, name in there if workload == "handler"} >= {"trunkline", "procrastinate", "pgqueuer", "awa", "dramatiq-redis"}
    assert all(row["rounds"] for row in rows())


def test_a_message_is_100_bytes_of_json() -> None:
    from bench.message import message

    for n in (0, 9, 10, 99_999, 3_599_999):
        assert len(json.dumps(message(n), separators=(",", ":"))) == 100


@pytest.mark.parametrize("workload", ["tasks", "batches", "handler", "alone", "hour", "exceptions"])
def test_each_workload_runs_for_a_moment_and_loses_nothing(workload: str, tmp_path: Path) -> None:
    command = ["-m", "bench", "run", "--workload", workload, "--contender", "trunkline", "--rounds", "1", "--seconds", "0.02"]
    ran = subprocess.run([sys.executable, *command, "--into", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    ((row,),) = [json.loads((tmp_path / "results.json").read_text())["rows"]]
    assert row["rounds"][0]["lost"] == 0 and row["rounds"][0]["messages"] > 0
    assert "trunkline" in (tmp_path / "results.md").read_text()
