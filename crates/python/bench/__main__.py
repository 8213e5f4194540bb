"""Runs the comparison. `python -m bench run` measures, and writes the rows and their page;
`python -m bench page` writes only the page."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import page, rounds
from bench.contenders import MODULES

FOLDER = Path(__file__).parent
SUITES = {
    "compare": ["tasks", "handler", "batches", "alone"],
    "memory": ["hour", "exceptions"],
    "all": ["tasks", "handler", "batches", "alone", "hour", "exceptions"],
}


def main() -> None:
    arguments = _arguments()
    rows_file = arguments.into / "results.json"
    if arguments.verb == "run":
        workloads = arguments.workload or SUITES[arguments.suite]
        contenders = arguments.contender or list(MODULES)
        load = os.getloadavg()[0]
        before = json.loads(rows_file.read_text()) if rows_file.exists() and arguments.add else None

        def keep(servers: Mapping[str, str], rows: list[rounds.Row]) -> None:
            results = _joined(before, _made(servers, load), [asdict(row) for row in rows])
            rows_file.write_text(json.dumps(results, indent=1) + "\n")

        rounds.run(contenders, workloads, arguments.rounds, arguments.seconds, arguments.pg_bin, keep)
    results = json.loads(rows_file.read_text())
    (arguments.into / "results.md").write_text(page.page(results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("verb", choices=["run", "page"])
    parser.add_argument("--suite", choices=list(SUITES), default="compare")
    parser.add_argument("--workload", action="append", help="a workload to run instead of a suite; can be repeated")
    parser.add_argument("--contender", action="append", choices=list(MODULES), help="a contender to run instead of all; can be repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="the approximate length of a round")
    parser.add_argument("--pg-bin", default="", help="the folder of PostgreSQL's programs")
    parser.add_argument("--add", action="store_true", help="keep the rows of other workloads and contenders")
    parser.add_argument("--into", type=Path, default=FOLDER, help="the folder of results.json and results.md")
    return parser.parse_args()


def _made(servers: Mapping[str, str], load: float) -> dict[str, Any]:
    commit = subprocess.run(["git", "-C", str(FOLDER), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip() or "unknown",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "servers": dict(servers),
        "python": platform.python_version(),
        "load": round(load, 1),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "commands": ["python -m bench " + shlex.join(_public(sys.argv[1:]))],
    }


def _public(arguments: list[str]) -> list[str]:
    """Returns the arguments without the options that apply only to this machine."""
    kept = list(arguments)
    for name in ("--pg-bin", "--into"):
        if name in kept:
            at = kept.index(name)
            del kept[at : at + 2]
    return kept


def _joined(before: Mapping[str, Any] | None, made: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    if before is None:
        return {"made": made, "rows": rows}
    new = {(row["workload"], row["contender"]) for row in rows}
    kept = [row for row in before["rows"] if (row["workload"], row["contender"]) not in new]
    made["servers"] = {**before["made"]["servers"], **made["servers"]}
    made["commands"] = [*before["made"]["commands"], *made["commands"]]
    return {"made": made, "rows": [*kept, *rows]}


if __name__ == "__main__":
    main()
