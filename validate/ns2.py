#!/usr/bin/env python3
"""Runs the same dumbbells in Cutline and in ns-2 and compares their results.

    python3 validate/ns2.py --cutline target/release/cutline --out docs/validation

writes `ns2.md` for people and `ns2.json` for programs. A measure agrees when the 95 % interval of the difference holds
zero, or when the difference is smaller than matters (`TOLERANCE`). What differs beyond that is explained in
`ns2_notes.py`, or was chance, as new seeds do not show it (`AGAIN`); anything else makes this program fail.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import stats
from dumbbells import CASES, Dumbbell
from ns2_notes import note
from ns2_page import page

HERE = Path(__file__).resolve().parent

Run = dict[str, float]
"""The results of one run of one engine: measures by name."""

TOLERANCE = {
    "utilisation": 0.01,
    "queue": 0.05,
    "average": 0.05,
    "max_p": 0.10,
    "drops": 0.10,
    "goodput": 0.05,
    "spread": 0.15,
    "fairness": 0.03,
    "timeouts": 0.15,
    "retransmissions": 0.10,
}
"""Differences, as a share of ns-2's value, that are too small to matter: what a change of seed or of a paper's round
numbers moves a result by. The spread and the timeouts are the noisiest of them."""


AGAIN = 4
"""A difference that no note explains is looked at again with so many times the seeds, all of them new."""


def ns2_run(case: Dumbbell, seed: int) -> Run:
    """One run of ns-2."""
    command = ["ns", str(HERE / "ns2/dumbbell.tcl"), *case.ns2_arguments(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}
    measured = case.measured()
    run = {
        "utilisation": found["queue.bytes"] * 8 / (case.rate_mbps * 1e6 * measured),
        "queue": found["queue.packet_seconds"] / measured,
        "drops": found["queue.dropped"] / found["queue.arrived"],
    }
    if case.red:
        run |= {"average": found["red.average"], "max_p": found["red.max_p"]}
    first = 0
    for kind, count in case.classes().items():
        ids = range(first, first + count)
        goodputs = [ns2_goodput(found, kind, i) * 8 / measured / 1e3 for i in ids]
        run |= of_class(kind, goodputs)
        if kind == "newreno":
            run |= {f"{kind}.{name}": mean(found[f"flow.{i}.{name}"] for i in ids) for name in COUNTERS}
        first += count
    return run


COUNTERS = ("timeouts", "retransmissions")


def ns2_goodput(found: Run, kind: str, flow: int) -> float:
    """Bytes: what TCP has had acknowledged, what left the bottleneck of the others."""
    return found[f"flow.{flow}.acked"] * 1000 if kind == "newreno" else found.get(f"flow.{flow}.bytes", 0.0)


def cutline_runs(cutline: str, case: Dumbbell, seeds: range) -> list[Run]:
    """All runs of Cutline."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(case.scenario(seeds))
        file.flush()
        command = [cutline, "run", file.name, "--json", "--no-store", "--quiet", "--jobs", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [cutline_run(run) for run in json.loads(done.stdout)["runs"]]


def cutline_run(run: dict) -> Run:
    """The measures of one run, with the names of ns-2's measures."""
    queue = next(queue for queue in run["queues"] if queue["link"] == "r1->r2")
    found = {
        "utilisation": queue["utilisation"],
        "queue": queue["backlog_mean_packets"],
        "drops": queue["drop_ratio"],
    }
    if queue["max_p_mean"] is not None:
        found |= {"average": queue["average_mean_packets"], "max_p": queue["max_p_mean"]}
    for kind in dict.fromkeys(flow["group"] for flow in run["flows"]):
        flows = [flow for flow in run["flows"] if flow["group"] == kind]
        found |= of_class(kind, [flow["goodput_bps"] / 1e3 for flow in flows])
        if kind == "newreno":
            found |= {f"{kind}.{name}": mean(flow[name] for flow in flows) for name in COUNTERS}
    return found


def of_class(kind: str, goodputs: list[float]) -> Run:
    """A class's mean goodput and how evenly its flows share it."""
    found = {f"{kind}.goodput": mean(goodputs)}
    if len(goodputs) > 1:
        found |= {f"{kind}.spread": stats.variation(goodputs), f"{kind}.fairness": stats.jain(goodputs)}
    return found


def mean(values) -> float:
    """The mean of any iterable."""
    values = list(values)
    return sum(values) / len(values)


def compare(case: Dumbbell, ours: list[Run], theirs: list[Run]) -> dict:
    """The rows of a case: each measure of both engines with intervals, and the verdict on the difference."""
    names = [name for name in theirs[0] if name in ours[0]]
    rows = [compare_measure(case, name, [r[name] for r in ours], [r[name] for r in theirs]) for name in names]
    return {"name": case.name, "description": case.describe(), "rows": rows}


def compare_measure(case: Dumbbell, name: str, ours: list[float], theirs: list[float]) -> dict:
    """One row."""
    left, right, gap = stats.estimate(ours), stats.estimate(theirs), stats.difference(ours, theirs)
    tolerance = TOLERANCE[name.rsplit(".", 1)[-1]] * abs(right.mean)
    noise = gap.low <= 0 <= gap.high
    verdict = "noise" if noise else "small" if abs(gap.mean) <= tolerance else "differs"
    sides = {side: {"mean": e.mean, "low": e.low, "high": e.high, "n": e.n} for side, e in
             (("cutline", left), ("ns2", right), ("difference", gap))}  # fmt: skip
    relative = gap.mean / right.mean if right.mean else None
    return {"measure": name, **sides, "relative": relative, "verdict": verdict}


def measure_all(cases: list[Dumbbell], cutline: str, seeds: range, jobs: int) -> list[dict]:
    """Every case in both engines, several runs at a time, with a line of progress on stderr."""
    done, total = 0, len(cases) * (len(seeds) + 1)

    def counted(work: Callable, *arguments):
        nonlocal done
        result = work(*arguments)
        done += 1
        if sys.stderr.isatty():
            print(f"\r{done}/{total} {arguments[-2].name:40}", end="", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        started = [
            (
                case,
                pool.submit(counted, lambda case, seeds: cutline_runs(cutline, case, seeds), case, seeds),
                [pool.submit(counted, ns2_run, case, seed) for seed in seeds],
            )
            for case in cases
        ]
        found = [compare(case, ours.result(), [run.result() for run in theirs]) for case, ours, theirs in started]
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found


def in_doubt(found: list[dict], case: Dumbbell) -> bool:
    """True if something of a case differs that no note speaks of: among hundreds of rows chance does that, too."""
    rows = next(other["rows"] for other in found if other["name"] == case.name)
    return any(row["verdict"] == "differs" and note(case.name, row["measure"]) is None for row in rows)


def look_again(found: list[dict], again: list[dict]) -> None:
    """Adds the results with new seeds to the rows that differ."""
    for new in again:
        case = next(case for case in found if case["name"] == new["name"])
        for row, other in zip(case["rows"], new["rows"], strict=True):
            if row["verdict"] == "differs":
                row["again"] = other


def main() -> int:
    """Measures, writes both files, and fails if a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=20, help="replications, at least 10 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (default: one a core)")
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    arguments = parser.parse_args()
    known = {case.name for case in CASES}
    if unknown := set(arguments.case or []) - known:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    cases = [case for case in CASES if not arguments.case or case.name in arguments.case]
    measure = partial(measure_all, cutline=arguments.cutline, jobs=arguments.jobs)
    first = range(1, arguments.seeds + 1)
    found = measure(cases, seeds=first)
    again = range(first.stop, first.stop + AGAIN * arguments.seeds)
    look_again(found, measure([case for case in cases if in_doubt(found, case)], seeds=again))
    text, unexplained = page(found, arguments.seeds)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "ns2.md").write_text(text)
    document = {"seeds": arguments.seeds, "tolerance": TOLERANCE, "cases": found}
    (arguments.out / "ns2.json").write_text(json.dumps(document, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
