"""Common part of the comparisons with the kernel's queues and with ns-3: Cutline's runs, tolerances and verdicts."""

import argparse
import json
import subprocess
import tempfile

import stats
from linux_mixes import Mix, Queue

Run = dict[str, float]
"""The results of one run of one engine: measures by name."""

Tolerances = dict[str, tuple[float, float]]

TOLERANCE: Tolerances = {
    "utilisation": (0.0, 0.01),
    "drops": (0.10, 0.002),
    "loss": (0.15, 0.005),
    "p50": (0.10, 0.001),
    "p99": (0.15, 0.003),
    "goodput": (0.05, 0.0),
    "fairness": (0.05, 0.0),
}
"""Differences that are too small to matter: a share of the other engine's value, or so much of the unit (a share, s, bit/s),
whichever is more."""


def of_bulk(goodputs: list[float]) -> Run:
    """The mean goodput of the transfers, and how evenly they share it."""
    return {"bulk.goodput": mean(goodputs), "bulk.fairness": stats.jain(goodputs)}


def cutline_runs(cutline: str, mix: Mix, queue: Queue, seeds: range) -> list[Run]:
    """All runs of Cutline."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(mix.scenario(queue, seeds))
        file.flush()
        command = [cutline, "run", file.name, "--json", "--no-store", "--quiet", "--jobs", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [cutline_run(run, mix) for run in json.loads(done.stdout)["runs"]]


def cutline_run(run: dict, mix: Mix) -> Run:
    """The measures of one run, with the names of the other engine's measures."""
    queue = next(queue for queue in run["queues"] if queue["link"] == "r1->r2")
    found = {"utilisation": queue["utilisation"], "drops": queue["drop_ratio"]}
    for udp in mix.udp:
        flows = [flow for flow in run["flows"] if flow["group"] == udp.name]
        dropped, received = (sum(flow[name] for flow in flows) for name in ("packets_dropped", "packets_received"))
        found[f"{udp.name}.loss"] = dropped / (dropped + received)
        for quantile in ("mean", "p50", "p99"):
            found[f"{udp.name}.{quantile}"] = mean(flow[f"queuing_{quantile}_ms"] for flow in flows) / 1e3
        found[f"{udp.name}.rate"] = mean(flow["goodput_bps"] for flow in flows)
    for tcp in mix.tcp_classes:
        found[f"{tcp.name}.goodput"] = mean(flow["goodput_bps"] for flow in run["flows"] if flow["group"] == tcp.name)
    bulk = [flow["goodput_bps"] for flow in run["flows"] if flow["group"] == "bulk"]
    return found | (of_bulk(bulk) if bulk else {})


def mean(values) -> float:
    """The mean of any iterable."""
    values = list(values)
    return sum(values) / len(values)


def compare(mix: Mix, queue: Queue, peer: str, ours: list[Run], theirs: list[Run], tolerances: Tolerances = TOLERANCE) -> dict:
    """The rows of a mix at a queue: each measure of the other engine, for both with intervals, and the verdict on the difference.

    `peer` is the other engine's name.
    """
    rows = [compare_measure(name, peer, [run[name] for run in ours], [run[name] for run in theirs], tolerances) for name in theirs[0]]
    return {"mix": mix.name, "queue": queue.name, "rows": rows}


def compare_measure(name: str, peer: str, ours: list[float], theirs: list[float], tolerances: Tolerances) -> dict:
    """One row."""
    left, right, gap = stats.estimate(ours), stats.estimate(theirs), stats.difference(ours, theirs)
    share, least = tolerances[name.rsplit(".", 1)[-1]]
    tolerance = max(share * abs(right.mean), least)
    sides = {side: {"mean": e.mean, "low": e.low, "high": e.high, "n": e.n} for side, e in
             (("cutline", left), (peer, right), ("difference", gap))}  # fmt: skip
    return {"measure": name, **sides, "tolerance": tolerance, "verdict": stats.verdict(gap, tolerance)}


def chosen(parser: argparse.ArgumentParser, kind: str, all_of_them: list, names: list[str] | None) -> list:
    """The objects with the given names, or all."""
    known = [one.name for one in all_of_them]
    if unknown := set(names or []) - set(known):
        parser.error(f"no {kind} {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [one for one in all_of_them if not names or one.name in names]
