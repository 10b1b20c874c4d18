#!/usr/bin/env python3
"""Runs the same transfers over the same paths of a fat-tree in Cutline and in ns-3, and compares completion times, time and memory.

    python3 validate/ns3_fattree.py --cutline target/release/cutline --out docs/validation

writes `ns3-fat-tree.md` with a figure for people and `ns3-fat-tree.json` for programs. It builds `ns3/fattree.cc` first. Both engines
have the transfers that `cutline check --flows` lists, so each pair of runs has the same starts, sizes and paths, and the differences are
those of pairs. The rules (`TOLERANCE`) were fixed before the first run. A difference without a note makes this program fail.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import stats
from fattree_figure import figure
from fattree_page import page
from ns3_build import build

HERE = Path(__file__).resolve().parent
PACKET, HEADERS = 1500, 52
RATE, DELAY_NS, QUEUE = 1_000_000_000, 5_000, 100

SIZES = (("short", 0, 100_000), ("medium", 100_000, 10_000_000), ("long", 10_000_000, 10**15))
"""The classes of sizes, B: above the second number, up to the third."""

TOLERANCE = {"mean": 0.10, "p50": 0.10, "p99": 0.20, "all": 0.10}
"""Differences that are too small to matter, as shares of ns-3's value. `all` is the mean of all slowdowns."""


@dataclass(frozen=True)
class Case:
    """A fat-tree of k-port switches, and the time for which transfers arrive."""

    k: int
    load: float
    arrivals_ms: int
    seeds: int

    @property
    def name(self) -> str:
        """The name of the case, such as `k = 4, load 50 %`."""
        return f"k = {self.k}, load {self.load:.0%}".replace("%", " %")

    def scenario(self, folder: Path) -> Path:
        """Writes the case as a scenario for Cutline."""
        sizes = HERE.parent / "examples/web-search.cdf"
        path = folder / f"fat-tree-{self.k}.toml"
        path.write_text(
            f'name = "fat-tree-{self.k}"\nduration = "20 s"\ninterval = "1 s"\n\n'
            f'[topology]\nkind = "fat-tree"\nk = {self.k}\nrate = "{RATE} bit/s"\ndelay = "{DELAY_NS} ns"\n'
            f'queue = {{ aqm = "drop-tail", limit = "{QUEUE} packets" }}\n\n'
            f'[[flow]]\nname = "search"\n'
            f'arrivals = {{ load = {self.load}, size-file = "{sizes}", until = "{self.arrivals_ms} ms" }}\n'
            f'transport = {{ protocol = "tcp", mss = "{PACKET - HEADERS} B", header = "{HEADERS} B", ack-size = "{HEADERS} B", '
            'limited-transmit = false, delayed-ack = "1 ms", avoidance = "acknowledgements", initial-window = "10 packets", '
            'min-rto = "10 ms", initial-rto = "10 ms", least-variation = "1 ms" }\n'
        )
        return path


CASES = [Case(4, 0.5, 200, 6), Case(8, 0.5, 30, 4)]


@dataclass(frozen=True)
class Measured:
    """One run of one engine."""

    times: dict[str, float]
    """Completion times by transfer, s."""
    dropped: int
    seconds: float
    """Processor time of the process."""
    wall: float
    """Time of the process on the clock, s."""
    megabytes: float
    """The largest resident set."""
    hops: int | None = None
    """Packets that links have transmitted; None if the engine does not count them."""


def measure(command: list[str]) -> tuple[str, float, float, float]:
    """Runs a command: its output, processor time and time on the clock in seconds, and largest memory in MB."""
    with tempfile.TemporaryFile("w+") as out:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        return out.read(), usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1000


def cutline_run(cutline: str, scenario: Path, seed: int) -> Measured:
    """One run of Cutline, with its results as a document."""
    command = [cutline, "run", str(scenario), "--set", f"seed={seed}", "--json", "--no-store", "--quiet", "--jobs", "1"]
    text, seconds, wall, megabytes = measure(command)
    (run,) = json.loads(text)["runs"]
    times = {flow["flow"]: flow["transfer_mean_ms"] / 1e3 for flow in run["flows"] if flow["transfers"]}
    dropped = sum(queue["dropped"] for queue in run["queues"])
    hops = sum(queue["departed"] for queue in run["queues"])
    return Measured(times, dropped, seconds, wall, megabytes, hops)


def ns3_run(program: Path, case: Case, flows: Path) -> Measured:
    """One run of ns-3."""
    command = [str(program), f"--k={case.k}", f"--flows={flows}", f"--queue={QUEUE}", f"--rate={RATE}", f"--delay={DELAY_NS}"]
    text, seconds, wall, megabytes = measure(command)
    found = dict(line.split() for line in text.splitlines())
    times = {name[4:]: float(value) for name, value in found.items() if name.startswith("fct.")}
    return Measured(times, int(found["dropped"]), seconds, wall, megabytes)


def read_flows(path: Path) -> dict[str, tuple[int, int]]:
    """Size in bytes and links of the path of every transfer."""
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return {line[0]: (int(line[5]), len(line[6].split()) - 1) for line in lines}


def ideal(size: int, links: int) -> float:
    """The time of a transfer that no other packet and no window delays: its packets on a link, and the last one on the others."""
    packets = -(-size // (PACKET - HEADERS))
    last = size - (packets - 1) * (PACKET - HEADERS) + HEADERS
    on_wire = (size + packets * HEADERS) * 8 / RATE
    return on_wire + (links - 1) * last * 8 / RATE + links * DELAY_NS * 1e-9


def quantile(values: list[float], q: float) -> float:
    """The value below which a share of the values is, at least one of them."""
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def measures(run: Measured, flows: dict[str, tuple[int, int]]) -> dict[str, float]:
    """The measures of a run by name: completion times in ms, and the mean slowdown of all transfers."""
    found = {}
    for name, least, most in SIZES:
        times = [run.times[flow] * 1e3 for flow, (size, _) in flows.items() if least < size <= most]
        if times:
            found |= {f"{name}.mean": sum(times) / len(times), f"{name}.p50": quantile(times, 0.5)}
        if len(times) >= 100:
            found[f"{name}.p99"] = quantile(times, 0.99)
    slowdowns = [run.times[flow] / ideal(*about) for flow, about in flows.items()]
    return found | {"slowdown.all": sum(slowdowns) / len(slowdowns)}


def compare(name: str, ours: list[float], theirs: list[float]) -> dict:
    """One row: both engines with intervals, and the verdict on the mean difference of the pairs."""
    left, right = stats.estimate(ours), stats.estimate(theirs)
    gap = stats.estimate([one - other for one, other in zip(ours, theirs)])
    tolerance = TOLERANCE[name.rsplit(".", 1)[-1]] * abs(right.mean)
    sides = {side: {"mean": e.mean, "low": e.low, "high": e.high, "n": e.n} for side, e in
             (("cutline", left), ("ns3", right), ("difference", gap))}  # fmt: skip
    return {"measure": name, **sides, "tolerance": tolerance, "verdict": stats.verdict(gap, tolerance)}


def cost(runs: list[Measured], hops: list[int]) -> dict[str, float]:
    """Medians of processor time in s and of memory in MB, and the most transmissions per second of processor time: other load only adds
    time."""
    middle = lambda values: sorted(values)[len(values) // 2]  # noqa: E731
    return {
        "seconds": middle([run.seconds for run in runs]),
        "megabytes": middle([run.megabytes for run in runs]),
        "hops_per_second": max(hop / run.seconds for run, hop in zip(runs, hops)),
    }


def stored(path: Path, again: bool, run: Callable[[], Measured]) -> Measured:
    """The run in a file, which an interrupted comparison has finished, or a new run, which is stored there."""
    if path.exists() and not again:
        return Measured(**json.loads(path.read_text()))
    found = run()
    path.write_text(json.dumps(dataclasses.asdict(found)))
    return found


def run_case(cutline: str, program: Path, work: Path, case: Case, again: bool = True) -> dict:
    """All runs of a case in turn, and their comparison."""
    scenario = case.scenario(work)
    ours, theirs, flows_of = [], [], []
    for seed in range(1, case.seeds + 1):
        table = work / f"flows-{case.k}-{seed}.csv"
        listed = subprocess.run(
            [cutline, "check", str(scenario), "--flows", "--set", f"seed={seed}"], capture_output=True, text=True, check=True
        )
        table.write_text(listed.stdout)
        flows_of.append(read_flows(table))
        ours.append(stored(work / f"cutline-{case.k}-{seed}.json", again, lambda: cutline_run(cutline, scenario, seed)))
        theirs.append(stored(work / f"ns3-{case.k}-{seed}.json", again, lambda: ns3_run(program, case, table)))
        for side in (ours[-1], theirs[-1]):
            if missing := flows_of[-1].keys() - side.times.keys():
                raise SystemExit(f"{case.name}, seed {seed}: {len(missing)} transfers have not ended")
        print(f"{case.name} seed {seed}: {ours[-1].seconds:.1f} s, {theirs[-1].seconds:.1f} s", file=sys.stderr)
    by_seed = [[measures(run, flows) for run, flows in zip(side, flows_of)] for side in (ours, theirs)]
    # A class of sizes counts only where every seed has it.
    names = [name for name in by_seed[1][0] if all(name in run for side in by_seed for run in side)]
    rows = [compare(name, *([run[name] for run in side] for side in by_seed)) for name in names]
    hops = [run.hops or 0 for run in ours]
    slowdowns = [
        [(flows[flow][0], seconds / ideal(*flows[flow])) for run, flows in zip(side, flows_of) for flow, seconds in run.times.items()]
        for side in (ours, theirs)
    ]
    return {
        "case": case.name,
        "seeds": case.seeds,
        "transfers": sum(len(flows) for flows in flows_of),
        "hops": sum(hops),
        "dropped": {"cutline": sum(run.dropped for run in ours), "ns3": sum(run.dropped for run in theirs)},
        "cost": {"cutline": cost(ours, hops), "ns3": cost(theirs, hops)},
        "rows": rows,
        "slowdowns": {"cutline": slowdowns[0], "ns3": slowdowns[1]},
    }


def main() -> int:
    """Measures, writes the page, and fails if a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("target/ns3"), help="where to build (default: %(default)s)")
    parser.add_argument("--k", type=int, action="append", help="only this fat-tree; may be repeated")
    parser.add_argument("--seeds", type=int, help="replications of each case (default: 6 and 4)")
    parser.add_argument("--resume", action="store_true", help="take the runs that an interrupted comparison has stored in --work")
    arguments = parser.parse_args()
    cases = [case for case in CASES if not arguments.k or case.k in arguments.k]
    if arguments.seeds:
        cases = [Case(case.k, case.load, case.arrivals_ms, arguments.seeds) for case in cases]
    program = build("fattree", arguments.work)
    found = [run_case(arguments.cutline, program, arguments.work, case, not arguments.resume) for case in cases]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "ns3-fat-tree.svg").write_text(figure(found))
    for case in found:
        del case["slowdowns"]
    text, unexplained = page(found)
    (arguments.out / "ns3-fat-tree.md").write_text(text)
    (arguments.out / "ns3-fat-tree.json").write_text(json.dumps({"tolerance": TOLERANCE, "cases": found}, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
