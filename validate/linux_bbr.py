#!/usr/bin/env python3
"""Compares the simulated BBR, version 1, with Linux's: the same scenario in the simulator and, with real TCP, in the laboratory.

    sudo python3 validate/linux_bbr.py --cutline target/release/cutline --out docs/validation

writes `linux-bbr.md` for people and `linux-bbr.json` for programs. Both sides have the same queues, of the same code, so what differs
is TCP. Rule (`linux_rows.row`) and tolerances (`MEASURES`) are fixed before the run. What differs and has no line in `NOTES` makes
this program fail.

The laboratory runs in real time: 20 to 50 seconds a run, `--jobs` at a time, with the highest priority (nice -20). It needs root, and a
kernel with `bbr`. A run whose timing is not valid is repeated, `--attempts` in all. `--keep DIR` keeps the runs, and repeats none whose
timing is valid when it is called again.

If other programs keep the machine busy, the timing of no run is valid. A run whose packets and writes were on time all the same
(`is_punctual`) counts then, and the page states the number of such runs. As with `cutline reproduce lab`, a difference in a case with
such a run is not a verdict: it is unclear. All other runs without a valid timing are left out.
"""

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import stats
from linux_rows import Measure, Run, kernel, row, table, verdict_rules
from peer_page import paragraph

INTERVAL = 0.02
"""Width of the intervals of series, s."""
APART = 1.0
"""Intervals of ProbeRTT that are further apart, s, belong to two phases."""

CORE = {
    "throughput": Measure("goodput of all flows, Mbit/s", 0.02, 0),
    "drops": Measure("dropped at the queue, %", 0.2, 0.2),
    "wait": Measure("wait in the queue, mean, ms", 0.1, 1),
    "wait-p95": Measure("wait in the queue, 95th percentile, ms", 0.1, 2),
    "wait-least": Measure("wait in the queue, least mean of an interval of 20 ms, ms", 0.1, 1),
}
PROBING = {
    "probe-time": Measure("intervals of 20 ms with the link less than half used, % of the time", 0.2, 0.5),
    "probes": Measure("phases of such intervals, more than 1 s apart", 0, 0.5),
}
SHARE = {"share": Measure("BBR's share of the goodput, %", 0, 5)}
FAIRNESS = {"fairness": Measure("Jain's index of the goodputs", 0, 0.03)}
FLOWS = {
    "wait-bbr": Measure("wait of BBR's packets, mean, ms", 0.1, 1),
    "wait-cubic": Measure("wait of CUBIC's packets, mean, ms", 0.1, 1),
}
MEASURES = CORE | PROBING | SHARE | FAIRNESS | FLOWS


@dataclass(frozen=True)
class Case:
    """A scenario: flows over a path with a queue."""

    bbr: int
    cubic: int
    queue: str
    """`drop-tail` with `buffer`, or `fq-codel`."""
    buffer: float
    """The limit, in products of rate and round-trip time."""
    mbit: int
    rtt_ms: int
    seconds: int
    warm_up: int
    measures: dict[str, Measure]

    @property
    def name(self) -> str:
        """The name of its folder."""
        flows = f"{self.bbr}-bbr" + (f"-{self.cubic}-cubic" if self.cubic else "")
        queue = f"drop-tail-{self.buffer:g}" if self.queue == "drop-tail" else self.queue
        return f"{flows}-{queue}-{self.mbit}-mbit-{self.rtt_ms}-ms"

    @property
    def title(self) -> str:
        """The heading of its table."""
        flows = "One BBR" if self.bbr == 1 else f"{self.bbr} BBRs"
        flows += " beside CUBIC" if self.cubic else ""
        products = {0.25: "a quarter of a product", 1: "one product"}.get(self.buffer, f"{self.buffer:g} products")
        queue = f"drop-tail of {products}" if self.queue == "drop-tail" else "FQ-CoDel"
        return f"{flows} over {queue}, {self.mbit} Mbit/s, {self.rtt_ms} ms"


PATHS = [(10, 20), (10, 80), (50, 20)]
SHORT, LONG, SEVERAL = (23, 3), (50, 15), (40, 15)
"""Duration and warm-up, s. BBR alone has two phases of ProbeRTT in the measured time of a short run."""
CASES = [
    *(Case(1, 0, "drop-tail", buffer, *path, *SHORT, CORE | PROBING) for buffer in (0.25, 1, 4) for path in PATHS),
    Case(1, 1, "drop-tail", 1, 10, 80, *LONG, SHARE | CORE | FLOWS),
    Case(1, 1, "drop-tail", 4, 10, 80, *LONG, SHARE | CORE | FLOWS),
    Case(1, 1, "drop-tail", 1, 50, 20, *LONG, SHARE | CORE | FLOWS),
    Case(4, 0, "drop-tail", 4, 10, 80, *SEVERAL, FAIRNESS | CORE | PROBING),
    Case(4, 0, "drop-tail", 1, 50, 20, *SEVERAL, FAIRNESS | CORE | PROBING),
    Case(1, 0, "fq-codel", 0, 10, 80, *SHORT, CORE | PROBING),
    Case(1, 0, "fq-codel", 0, 50, 20, *SHORT, CORE | PROBING),
    Case(1, 1, "fq-codel", 0, 10, 80, *SHORT, SHARE | CORE | FLOWS),
]

SCENARIO = """
name = "linux-bbr"
title = "{title}"
seed = {seed}
duration = "{seconds} s"
warm-up = "{warm_up} s"
interval = "{interval:g} ms"

[dumbbell]
rate = "{mbit} Mbit/s"
delay = "{delay:g} ms"
access-rate = "1 Gbit/s"
access-delay = "2.5 ms"
queue = {{ {queue} }}
"""

FLOW = """
[[flow]]
name = "{control}"
count = {count}
start = {{ from = "0 s", to = "500 ms" }}
transport = {{ protocol = "tcp", defaults = "linux", congestion-control = "{control}", mss = "1460 B", header = "40 B" }}
app = {{ kind = "bulk" }}
"""

QUANTA = (
    "Linux sends quanta of two segments here, and the buffer has room for four. With `ip link set host gso_max_segs 1` in the namespace of "
    "the sources, segments leave one by one as in the simulation, and of five runs 3.95 ± 0.09 % are dropped and the mean wait is 2.81 ± "
    "0.24 ms: nearly all of the difference is due to quanta"
)
LATER = (
    "the first phase begins within 0.1 s of the simulated one with each seed. The second begins up to 0.7 s later with Linux, or not "
    "before the end of the run. A round trip below the least one so far, by any amount, puts ProbeRTT off by ten seconds. In the "
    "laboratory round trips vary by tens of microseconds, and in the simulation they do not; that this is the cause was not measured"
)
FEW = (
    "not explained. With segments that leave one by one (`gso_max_segs 1`), Linux's index is 0.74 ± 0.17 and its drops 8.6 ± 1.2 % of four "
    "runs, so quanta may be the cause, but the interval is too wide to decide"
)

NOTES: list[tuple[str, str, str]] = [
    ("1-bbr-drop-tail-0.25-10-mbit-20-ms", "drops", QUANTA),
    ("1-bbr-drop-tail-0.25-10-mbit-80-ms", "probe*", LATER),
    ("1-bbr-drop-tail-0.25-50-mbit-20-ms", "probe*", LATER),
    ("4-bbr-drop-tail-1-50-mbit-20-ms", "fairness", FEW),
]
"""The known cause of a difference, or that there is none: patterns of the case's name and of the measure, and the cause."""


def scenario(case: Case, seed: int, *, control: str = "bbr", seconds: int | None = None, interval: float = INTERVAL) -> str:
    """The scenario of a run. `control` is that of the first flows."""
    product = case.mbit * 1e6 / 8 * case.rtt_ms / 1e3
    drop_tail = f'aqm = "drop-tail", limit = "{round(case.buffer * product)} B"'
    text = SCENARIO.format(
        title=case.title, seed=seed, seconds=seconds or case.seconds, warm_up=0 if seconds else case.warm_up,
        interval=interval * 1e3, mbit=case.mbit, delay=case.rtt_ms / 2 - 5,
        queue=drop_tail if case.queue == "drop-tail" else 'aqm = "fq-codel", limit = "2000 packets"',
    )  # fmt: skip
    text += FLOW.format(control=control, count=case.bbr)
    return text + (FLOW.format(control="cubic", count=case.cubic) if case.cubic else "")


def cutline(*command: str) -> str:
    """The output of a command, which must not fail."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def run(arguments: argparse.Namespace, in_lab: bool, text: str, folder: Path, *, writes: bool = True) -> tuple[dict, Path] | None:
    """A run, and the folder of its results; nothing if the last attempt in the laboratory was not punctual."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "linux-bbr.toml"
    file.write_text(text)
    command = ["lab", "run", "--resume", "--jobs", "1"] if in_lab else ["run", "--force"]
    for attempt in range(arguments.attempts):
        document = json.loads(cutline(arguments.cutline, *command, str(file), "--json", "--results", str(folder)))
        (found,) = document["runs"]
        timing = found.get("timing") or {}
        if timing.get("timing_ok", True):
            break
        print(f"{folder}: attempt {attempt + 1}: {timing['problem']}", file=sys.stderr, flush=True)
    return (found, Path(document["results_dir"])) if is_punctual(timing, writes=writes) else None


def is_punctual(timing: dict, *, writes: bool = True) -> bool:
    """Returns whether packets left and, with `writes`, applications wrote on time, and nothing was missed, however busy the machine was."""
    if not timing:
        return True
    late = max(timing["departure_error_p99_ms"], timing["source_lateness_p99_ms"] or 0 if writes else 0)
    return late <= timing["departure_bound_ms"] and timing["missed"] == 0 and timing["failed_flows"] == 0


def course(program: str, results: Path, group: str, measure: str) -> list[tuple[float, float]]:
    """Start and value of each interval of a run that has a value."""
    command = ["plot", str(results), "--kind", "time", "--group", group, "--measure", measure, "--json"]
    (panel,) = json.loads(cutline(program, *command))["panels"]
    (series,) = panel["series"]
    return [(dot["x"], dot["y"]) for dot in series["points"]]


def measures(program: str, case: Case, found: dict, results: Path) -> Run:
    """The compared measures of a run."""
    queue = next(queue for queue in found["queues"] if queue["link"] == "r1->r2")
    flows = found["flows"]
    goodputs = [flow["goodput_bps"] for flow in flows]
    waits = [(at, wait) for at, wait in course(program, results, "r1->r2", "delay_mean_ms") if at >= case.warm_up]
    used = [(at, share) for at, share in course(program, results, "r1->r2", "utilisation") if at >= case.warm_up]
    probing = [at for at, percent in used if percent < 50]
    values = {
        "throughput": sum(goodputs) / 1e6,
        "drops": 100 * queue["drop_ratio"],
        "wait": queue["delay_mean_ms"],
        "wait-p95": queue["delay_p95_ms"],
        "wait-least": min(wait for _, wait in waits),
        "probe-time": 100 * len(probing) / len(used),
        "probes": float(sum(at - before > APART for before, at in zip([-APART * 2, *probing], probing))),
        "fairness": stats.jain(goodputs),
    }
    if case.cubic:
        of = {control: [flow for flow in flows if flow["group"] == control] for control in ("bbr", "cubic")}
        values["share"] = 100 * sum(flow["goodput_bps"] for flow in of["bbr"]) / sum(goodputs)
        values |= {f"wait-{control}": members[0]["queuing_mean_ms"] for control, members in of.items()}
    return {name: values[name] for name in case.measures}


def measured(arguments: argparse.Namespace, keep: Path, cases: list[Case]) -> list[dict]:
    """The rows of all cases, with the timing of the laboratory's runs."""
    seeds = range(1, arguments.seeds + 1)
    program = arguments.cutline

    def one(job: tuple[bool, Case, int]) -> tuple[Run, dict] | None:
        in_lab, case, seed = job
        done = run(arguments, in_lab, scenario(case, seed), keep / ("lab" if in_lab else "simulated") / f"{case.name}-{seed}")
        if done is None:
            return None
        print(f"{'lab' if in_lab else 'simulated'}: {case.title}, seed {seed}", file=sys.stderr, flush=True)
        return measures(program, case, *done), done[0].get("timing") or {}

    longest_first = sorted(cases, key=lambda case: -case.seconds)
    jobs = [(in_lab, case, seed) for in_lab in (False, True) for case in longest_first for seed in seeds]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            results = dict(zip([(in_lab, case.name, seed) for in_lab, case, seed in jobs], pool.map(one, jobs)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    documents = []
    for case in cases:
        ours, linux = ([results[in_lab, case.name, seed] for seed in seeds] for in_lab in (False, True))
        counted = [done for done in linux if done is not None]
        if len(counted) < 2:
            raise RuntimeError(f"{case.title}: fewer than two runs of the laboratory were punctual")
        valid = sum(bool(timing["timing_ok"]) for _, timing in counted)
        sides = [done[0] for done in ours if done], [done[0] for done in counted]
        rows = [row(name, measure, *sides, "agrees") for name, measure in case.measures.items()]
        for found in rows:
            found["is_outside"] = found["verdict"] == "differs"
            if found["is_outside"] and valid < len(counted):
                found["verdict"] = "unclear"
        worst = max(timing["departure_error_p99_ms"] for _, timing in counted)
        about = {"counted": len(counted), "valid": valid, "departure_error_p99_ms": worst}
        documents.append({"case": case.name, "title": case.title, **about, "rows": rows})
    return documents


CHECKED = Case(1, 0, "drop-tail", 4, 10, 80, *SHORT, {})
"""The case in which sockets and bursts are checked."""
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
"""Of the rates that `ss` prints."""


def check(arguments: argparse.Namespace, keep: Path) -> dict:
    """The congestion control of the laboratory's sockets, and the largest number of packets that a source sends in a millisecond.

    The first two seconds do not count: Linux does not pace the first ten segments of a connection.
    """
    sockets = {}
    for control in ("bbr", "cubic"):
        folder = keep / f"socket-{control}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "linux-bbr.toml"
        file.write_text(scenario(CHECKED, 1, control=control))
        printed = cutline(arguments.cutline, "lab", "shell", str(file), "--", "sh", "-c", "sleep 6; ss -tinH")
        names = re.findall(r"^\s+(?:.* )?(reno|cubic|bbr)\b", printed, re.MULTILINE)
        rates = [float(number) * UNITS[unit] for number, unit in re.findall(r"\bpacing_rate ([\d.]+)([KMG]?)bps", printed)]
        sockets[control] = {"names": sorted(set(names)), "pacing_rate_bps": max(rates, default=None)}
    bursts = {}
    for side, control in (("simulated", "bbr"), ("lab", "bbr"), ("lab", "cubic")):
        text = scenario(CHECKED, 1, control=control, seconds=12, interval=0.001)
        done = run(arguments, side == "lab", text, keep / f"bursts-{side}-{control}", writes=False)
        if done is None:
            raise RuntimeError(f"bursts of {control}: no run of the laboratory was punctual")
        sent = course(arguments.cutline, done[1], control, "packets_sent")
        bursts[f"{side} {control}"] = max(packets for at, packets in sent if at >= 2)
    return {"sockets": sockets, "most_packets_in_1_ms": bursts}


HEAD = """\
# The simulated BBR against Linux's

One or several transfers with BBR, version 1, cross a link of 10 or 50 Mbit/s with a round trip of
20 or 80 ms without waiting, alone or beside CUBIC. {seeds} seeds on each side. On one side
everything is simulated, with `defaults = "linux"`. On the other side the transfers are Linux's TCP
({kernel}) in the laboratory, with real packets in real time over the same
queues with the same code. `sudo make validate-linux-bbr` rewrites this page in about {minutes} minutes.

A product is that of rate and round-trip time. One flow runs for 23 s, of which the first 3 are not
measured; a flow beside CUBIC over drop-tail for 50 s without the first 15; four flows for 40 s
without the first 15. Segments have 1460 B of payload, and 1500 B on the link.

ProbeRTT leaves four segments in flight, so the link is idle most of the time. Intervals of 20 ms in
which it is used by less than half are the time in ProbeRTT, and the least wait shows whether the
queue runs empty.

{verdicts}
Of {rows} measures {agrees} agree, {unclear} are unclear, {differs} differ.

"""


def page(cases: list[dict], checked: dict, arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """The page, and the measures that differ without an explanation."""
    unexplained: list[str] = []
    verdicts = [row["verdict"] for case in cases for row in case["rows"]]
    counts = {name: verdicts.count(name) for name in ("agrees", "unclear", "differs")}
    seconds = sum(case.seconds + 3 for case in CASES if any(case.name == document["case"] for document in cases))
    parts = [
        HEAD.format(verdicts=verdict_rules("agrees"), seeds=arguments.seeds, kernel=kernel(), minutes=round(seconds * arguments.seeds / arguments.jobs / 60) + 2,
                    rows=len(verdicts), **counts),
        valid_timing(cases, arguments.seeds), setup(checked), *TEXTS,
    ]  # fmt: skip
    for case in cases:
        name = case["case"]
        text, open_measures = table(case["rows"], MEASURES, lambda measure: cause(name, measure))
        parts.append(f"## {case['title']}\n\n{text}")
        unexplained += [f"{case['title']}: {measure}" for measure in open_measures]
    return "".join(parts).rstrip() + "\n", unexplained


TEXTS: list[str] = []
"""Sections before the tables."""


def cause(case: str, measure: str) -> str:
    """The known cause of a difference, or an empty text."""
    fits = (why for of_case, of_measure, why in NOTES if fnmatch.fnmatch(case, of_case) and fnmatch.fnmatch(measure, of_measure))
    return next(fits, "")


def valid_timing(cases: list[dict], seeds: int) -> str:
    """The paragraph about the timing of the laboratory."""
    counted, valid = (sum(case[key] for case in cases) for key in ("counted", "valid"))
    worst = max(case["departure_error_p99_ms"] for case in cases)
    outside = sum(found["is_outside"] for case in cases for found in case["rows"])
    text = f"The timing of {valid} of {len(cases) * seeds} runs of the laboratory is valid. "
    if counted > valid:
        text += (
            f"In {counted - valid} more the machine was busier than the laboratory allows, with other programs, but packets left and "
            "applications wrote on time. These runs count, but a measure whose whole interval is outside the tolerance is called unclear, "
            f"and not different, in a case with such a run: {outside} measures here. "
        )
    if left_out := len(cases) * seeds - counted:
        text += f"{left_out} runs were late and are left out. "
    return paragraph(text + f"The worst 99th percentile of the departure error is {worst:.2f} ms.") + "\n"


def setup(checked: dict) -> str:
    """The section about sockets and pacing."""
    sockets, bursts = checked["sockets"], checked["most_packets_in_1_ms"]
    names = {control: " and ".join(found["names"]) for control, found in sockets.items()}
    rate = sockets["bbr"]["pacing_rate_bps"]
    text = (
        f"`ss` in the namespace of the sources shows `{names['bbr']}` as the control of the sockets with "
        f"`congestion-control = \"bbr\"`, and `{names['cubic']}` with `\"cubic\"`. After 6 s at 10 Mbit/s the pacing rate of the first "
        f"is {(rate or 0) / 1e6:.1f} Mbit/s. The interfaces have no `fq`, so TCP itself paces. The largest number of packets that a source "
        f"sends in a millisecond, at {CHECKED.mbit} Mbit/s and {CHECKED.rtt_ms} ms from 2 s to 12 s, shows that it does. Two are a "
        "quantum. The first window, of ten segments, leaves at once on both sides."
    )
    rows = [("simulated BBR", "simulated bbr"), ("Linux's BBR", "lab bbr"), ("Linux's CUBIC, not paced", "lab cubic")]
    lines = [f"| {title} | {bursts[key]:.0f} |" for title, key in rows]
    header = "| source | packets |\n| --- | --- |\n"
    return f"## Sockets and pacing\n\n{paragraph(text)}\n{header}" + "\n".join(lines) + "\n\n"


def main() -> int:
    """Measures, writes both files, and fails if a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="replications, at least 2 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: %(default)s)")
    parser.add_argument("--attempts", type=int, default=4, help="runs of a seed until the timing is valid (default: %(default)s)")
    parser.add_argument("--case", default="*", help="only the cases whose names fit this pattern, such as '1-bbr-fq-codel*'")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    arguments = parser.parse_args()
    cases = [case for case in CASES if fnmatch.fnmatch(case.name, arguments.case)]
    if arguments.seeds < 2 or not cases:
        parser.error("--seeds: at least 2" if cases else "--case: no case has such a name")
    with tempfile.TemporaryDirectory() as temporary:
        keep = arguments.keep or Path(temporary)
        os.nice(-20)
        checked = check(arguments, keep)
        documents = measured(arguments, keep, cases)
    text, unexplained = page(documents, checked, arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "linux-bbr.md").write_text(text)
    tolerance = {name: {"share": measure.share, "least": measure.least} for name, measure in MEASURES.items()}
    document = {"seeds": arguments.seeds, "tolerance": tolerance, "check": checked, "cases": documents}
    (arguments.out / "linux-bbr.json").write_text(json.dumps(document, indent=1) + "\n")
    for measure in unexplained:
        print(f"not explained: {measure}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
