"""Writes the page of a run, using only the run's results."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

TITLES = {
    "tasks": ("Awaited enqueues", "1,000 tasks in one process, each of which awaits its message before it sends the next."),
    "handler": ("A handler that does nothing", "A backlog, from the first message that was handled to the last. The handler counts each message."),
    "batches": ("Batches of 1,000", "Four callers in one process, each of which awaits its batch before it sends the next."),
    "alone": ("One caller", "It awaits each message before it sends the next."),
    "hour": ("An hour's worth of messages", "A thousand a second for an hour are 3,600,000. One process enqueues, handles and acknowledges them as fast as it can."),
    "exceptions": ("A million exceptions", "A handler that raises for each message, which is a dead letter then, in one process. Its log is switched off."),
}
#: The package's own contenders. The page compares each peer with the faster of them. The Rust core
#: is not one of them.
OURS = ("trunkline", "trunkline-bytes")
COMPARED = ("tasks", "handler", "batches", "alone")


def page(results: Mapping[str, Any]) -> str:
    made = results["made"]
    servers = ", ".join(f"{name} {version}" for name, version in made["servers"].items())
    lines = [
        "# Trunkline's Python package and its peers",
        "",
        f"Commit `{made['commit']}`, {made['date']}. {servers}; Python {made['python']}; {made['machine']}. Clients and servers share the machine,",
        f"whose load average was {made['load']} as the last run began: 0 is a machine to oneself.",
        "Every server runs as it comes: PostgreSQL commits to disk, RabbitMQ confirms each message, Redis writes a snapshot now and then and",
        "so may lose what it has acknowledged. A message is a JSON object of 100 bytes. Contenders take turns, a round each, each round in processes of",
        "its own on an empty database. A figure is the median of its rounds, in brackets the least and the most. Written from `results.json` by",
        "`python -m bench page`.",
        "",
        "```text",
        *made["commands"],
        "```",
        "",
    ]
    for workload in TITLES:
        rows = [row for row in results["rows"] if row["workload"] == workload]
        if rows:
            lines += _section(workload, rows)
    lines += _who(results["rows"])
    lines += ["", *made.get("notes", [])] if made.get("notes") else []
    return "\n".join(lines).rstrip() + "\n"


def _section(workload: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    title, what = TITLES[workload]
    if workload not in COMPARED:
        return [f"## {title}", "", what, "", *_memory(rows), ""]
    ours = max((median(row, "messages_per_s") for row in rows if row["contender"] in OURS), default=0.0)
    latency = all("p50_ms" in row["rounds"][0] for row in rows)
    head = ["contender", "messages/s", "ours, times", *(["p50", "p99"] if latency else []), "lost", *(["twice"] if workload == "handler" else []), "rounds"]
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in sorted(rows, key=lambda row: -median(row, "messages_per_s")):
        mine = row["contender"].startswith("trunkline")
        rate = median(row, "messages_per_s")
        cells = [
            f"**{row['contender']}**" if mine else row["contender"],
            f"{short(rate)} ({short(least(row, 'messages_per_s'))} to {short(most(row, 'messages_per_s'))})",
            "" if mine or not ours else f"{ours / rate:.3g}",
        ]
        if latency:
            cells += [milliseconds(median(row, measure)) for measure in ("p50_ms", "p99_ms")]
        cells.append(f"{most(row, 'lost'):.0f}")
        if workload == "handler":
            cells.append(f"{most(row, 'doubled'):.0f}")
        cells.append(str(len(row["rounds"])))
        table.append("| " + " | ".join(cells) + " |")
    return [f"## {title}", "", what, "", *table, ""]


def _memory(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    table = ["| contender | messages | messages/s | after a tenth | at the end | most | lost |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        sizes = [f"{median(row, measure):.1f} MiB" for measure in ("tenth_mib", "end_mib", "peak_mib")]
        rate = short(median(row, "messages_per_s"))
        table.append(f"| {row['contender']} | {median(row, 'messages'):,.0f} | {rate} | {' | '.join(sizes)} | {most(row, 'lost'):.0f} |")
    return table


def _who(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    said = {row["contender"]: f"| {row['contender']} | {row['version']} | {row['settings']} |" for row in rows}
    return ["## Who, and how", "", "Where the settings come from stands in [the README](README.md).", "", "| contender | version | settings |", "|---|---|---|", *said.values()]


def median(row: Mapping[str, Any], measure: str) -> float:
    return statistics.median(round[measure] for round in row["rounds"])


def least(row: Mapping[str, Any], measure: str) -> float:
    return min(float(round[measure]) for round in row["rounds"])


def most(row: Mapping[str, Any], measure: str) -> float:
    return max(float(round[measure]) for round in row["rounds"])


def short(rate: float) -> str:
    """Returns a rate with three digits, such as 1.23 k."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.3g}"


def milliseconds(time: float) -> str:
    return f"{time:.0f} ms" if time >= 100 else f"{time:.3g} ms"
