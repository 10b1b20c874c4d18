#!/usr/bin/env python3
"""Measures Cutline's speed, compared with ns-2 where that is possible, and writes `bench.json`.

    python3 validate/bench.py --cutline target/release/cutline --out bench.json

Times are CPU times (user and system), so that other work on the machine disturbs them little; the two engines take
turns, and the median of several repetitions counts. ns-2's run phase is its whole process less a process that stops at
time 0. `bench.json` is a list of `{id, value, unit, peer, peer_value, ratio}`, ratio = peer_value / value.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dumbbells import Dumbbell

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PAPER = Dumbbell("papers-100", "pi", 15, newreno=100)
"""TSQ section 4.1: 100 flows, 15 Mbit/s, PI."""

LARGE = replace(PAPER, name="papers-1000", rate_mbps=150, newreno=1000, limit=8000, q_ref=2000, a=1.822e-6, b=1.816e-6)
"""The same ten times as large."""

SCALING = {10: 2000, 100: 500, 1_000: 50, 10_000: 10, 100_000: 3}
"""Flows, and simulated seconds that take a few seconds."""


@dataclass(frozen=True)
class Figure:
    """One measured value, with that of ns-2 if there is one."""

    id: str
    value: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None

    def document(self) -> dict:
        """As in `bench.json`."""
        ratio = self.peer_value / self.value if self.peer_value is not None and self.value else None
        return asdict(self) | {"ratio": ratio}


@dataclass(frozen=True)
class Process:
    """A finished process: its output, its CPU time and its largest resident memory."""

    output: str
    cpu_s: float
    resident_bytes: int


def run(command: list[str]) -> Process:
    """Runs a command and waits for its end. A failure ends the benchmark."""
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{errors}")
        output.seek(0)
        return Process(output.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def progress(what: str) -> None:
    """A line on stderr."""
    print(f"bench: {what}", file=sys.stderr, flush=True)


def bench_program(package: str, name: str) -> str:
    """Builds a benchmark and returns the path of its program."""
    progress(f"building {package}'s {name}")
    command = ["cargo", "bench", "--quiet", "-p", package, "--bench", name, "--no-run", "--message-format=json"]
    for line in run(command).output.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    sys.exit(f"cargo built no program for {package}'s {name}")


def ns2_command(case: Dumbbell, **changes: object) -> list[str]:
    """Runs ns-2 on a case, with some arguments replaced."""
    arguments = dict(argument.split("=") for argument in case.ns2_arguments(1)) | {"measure": 0} | changes
    return ["ns", str(HERE / "ns2/dumbbell.tcl"), *(f"{key}={value}" for key, value in arguments.items())]


def beside_ns2(case: Dumbbell, program: str, cutline: str, repetitions: int) -> list[Figure]:
    """Run phase, whole process and whole command, in nanoseconds of CPU a data packet through the bottleneck."""
    flows = case.newreno
    counted = run(ns2_command(case, measure=1, **{"from": 0})).output
    ns2_packets = float(dict(line.split() for line in counted.splitlines())["queue.departed"])
    ours: list[tuple[float, float, float]] = []
    theirs: list[tuple[float, float]] = []
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(case.scenario(range(1, 2)))
        file.flush()
        command = [cutline, "run", file.name, "--json", "--no-store", "--quiet", "--jobs", "1"]
        for repetition in range(repetitions):
            progress(f"{flows} flows, repetition {repetition + 1} of {repetitions}")
            process = run([program, str(flows), str(case.seconds)])
            found = json.loads(process.output)
            whole = run(command)
            packets = found["data_packets"]
            ours.append((found["run_cpu_s"] / packets, process.cpu_s / packets, whole.cpu_s / packets))
            setup, full = run(ns2_command(case, duration=0)).cpu_s, run(ns2_command(case)).cpu_s
            theirs.append(((full - setup) / ns2_packets, full / ns2_packets))
    run_ns, process_ns, command_ns = (statistics.median(column) * 1e9 for column in zip(*ours))
    ns2_run, ns2_process = (statistics.median(column) * 1e9 for column in zip(*theirs))
    unit = "ns CPU per data packet"
    return [
        Figure(f"sim.{flows}.run", run_ns, unit, "ns-2", ns2_run),
        Figure(f"sim.{flows}.process", process_ns, unit, "ns-2", ns2_process),
        Figure(f"sim.{flows}.command", command_ns, unit, "ns-2", ns2_process),
    ]


def scaling(program: str, repetitions: int) -> list[Figure]:
    """Speed and memory by the number of flows, each having 150 kbit/s."""
    figures = []
    for flows, seconds in SCALING.items():
        progress(f"scaling: {flows} flows for {seconds} s")
        runs = [json.loads(run([program, str(flows), str(seconds)]).output) for _ in range(repetitions)]
        found = sorted(runs, key=lambda run: run["run_cpu_s"])[len(runs) // 2]
        cpu = found["run_cpu_s"]
        figures += [
            Figure(f"scale.{flows}.run", cpu * 1e9 / found["data_packets"], "ns CPU per data packet"),
            Figure(f"scale.{flows}.events", found["events"] / cpu, "events/s per core"),
            Figure(f"scale.{flows}.hops", found["hops"] / cpu, "packet-hops/s per core"),
            Figure(f"scale.{flows}.memory", found["bytes_per_flow"], "B per flow"),
        ]
    return figures


def queues(program: str) -> list[Figure]:
    """Cost of a packet in each queue: the figures of the queues' own benchmark."""
    progress("queues")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run([program, "--json", file.name])
        found = json.loads(Path(file.name).read_text())
    return [Figure(f["id"], f["value"], f["unit"], f["peer"], f["peer_value"]) for f in found]


def evaluation(cutline: str) -> list[Figure]:
    """Duration of the whole evaluation of the TSQ paper on this machine."""
    if subprocess.run([cutline, "reproduce", "--help"], capture_output=True, check=False).returncode:
        progress("skipped: the time of the whole TSQ evaluation, for this cutline has no `reproduce`")
        return []
    progress("the whole TSQ evaluation")
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        process = run([cutline, "reproduce", "tsq", "--results", folder])
        wall = time.monotonic() - started
    return [
        Figure("reproduce.tsq.wall", wall, f"s on {os.cpu_count()} cores"),
        Figure("reproduce.tsq.cpu", process.cpu_s, "s CPU"),
        Figure("reproduce.tsq.memory", process.resident_bytes / 1e6, "MB"),
    ]


def table(figures: list[Figure]) -> str:
    """A table for readers, with a line for each value."""
    rows = [("figure", "Cutline", "unit", "peer", "", "ratio")]
    for figure in figures:
        beside = figure.peer is not None and figure.peer_value is not None
        rows.append((
            figure.id, number(figure.value), figure.unit, figure.peer or "",
            number(figure.peer_value) if beside else "", f"{figure.document()['ratio']:.1f}" if beside else "",
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = (1, 4, 5)
    lines = ["  ".join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))) for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(line.rstrip() for line in lines)


def number(value: float) -> str:
    """A number with four significant digits and separators between thousands."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def main() -> int:
    """Measures and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("bench.json"), help="where to write (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=5, help="repetitions of the comparison with ns-2 (default: %(default)s)")
    arguments = parser.parse_args()
    cutline = str(Path(arguments.cutline).resolve())
    simulator, lanes = bench_program("cutline-sim", "dumbbell"), bench_program("cutline-aqm", "queues")
    figures = beside_ns2(PAPER, simulator, cutline, arguments.repetitions)
    figures += beside_ns2(LARGE, simulator, cutline, min(arguments.repetitions, 3))
    figures += scaling(simulator, 3) + queues(lanes) + evaluation(cutline)
    arguments.out.write_text(json.dumps([figure.document() for figure in figures], indent=1) + "\n")
    print(table(figures))
    print(f"\nwritten to {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
