#!/usr/bin/env python3
"""Runs five experiments with Cutline's queueing disciplines in the kernel of a virtual machine, with real TCP, beside the kernel's own queues and
beside the simulator.

    python3 validate/qdisc.py --cutline target/release/cutline --out docs/validation

writes `qdisc.md` for people and `qdisc.json` for programs. The flows, the queues, and the findings with their rules are in `qdisc_mixes.py`.
The virtual machine is that of `linux.py`, with the command `cutline qdisc` and its objects. A finding that does not hold in the kernel, a
difference from the simulator without a note (`qdisc_page.py`), or a packet that is missing in the counters makes this program fail.

The machine runs once for each experiment. Its folder keeps the output, which is taken again where plan, kernel and programs are the same.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import bpf_build
import linux_vm
from linux_mixes import FRAME, Mix, Queue
from linux_runs import kernel_run, machine_runs, plan
from peer import Run, compare, cutline_runs
from qdisc_common import Fault, NotRun, building, installed, require, unaccounted
from qdisc_mixes import EXPERIMENTS, QUEUES, TOLERANCES, findings, is_ours, with_derived
from qdisc_page import judged, page

SIMULATED = range(1, 11)
"""The seeds of the simulator, whose runs take little time."""


@dataclass(frozen=True)
class Machine:
    """The virtual machine: its folder, the version of its kernel, and the command and its objects by their paths in it."""

    folder: Path
    version: str
    files: dict[str, Path]

    def runs(self, experiment: str, cases: list[tuple[Mix, Queue]], seeds: range) -> dict[tuple[str, str], list[dict]]:
        """The output of all runs of an experiment, by mix and queue."""
        lines = [line for case in cases for line in plan(*case, seeds)]
        seconds = sum(mix.seconds for mix, _ in cases) * len(seeds)
        found = iter(machine_runs(self.folder, f"qdisc-{experiment}", lines, seconds, self.version, self.files))
        return {(mix.name, queue.name): [next(found) for _ in seeds] for mix, queue in cases}


def fault(found: dict) -> str:
    """The fault in the counters of a run of one of Cutline's queues; empty if there is none."""
    [shown] = found["list"]
    if not shown["running"]:
        return "the queue does not run"
    lost = sum(flows["sent"] - flows["received"] for flows in found["classes"].values())
    dropped = sum(hint["dropped"]["packets"] for hint in shown["statistics"]["hints"])
    if lost > dropped:
        return f"{lost:.0f} datagrams were lost, and the queue has dropped {dropped} packets"
    return unaccounted(shown)


def of_kernel(found: dict, mix: Mix) -> Run:
    """The measures of a run of the machine."""
    more = {}
    for udp in mix.udp:
        flows = found["classes"][udp.name]
        more[f"{udp.name}.mean"] = flows["mean"]
        more[f"{udp.name}.rate"] = flows["arrived"] * udp.size * 8 / udp.count / found["seconds"]
    return with_derived(kernel_run(found, mix), mix, more)


def of_simulator(run: Run, mix: Mix) -> Run:
    """The measures of a run of the simulator."""
    return with_derived(run, mix, run)


def machine(arguments: argparse.Namespace) -> Machine:
    """Builds the objects and the files of the machine."""
    require(arguments.cutline)
    with building():
        tools, objects = bpf_build.build(arguments.work, arguments.bpf)
        return Machine(arguments.work, tools.version, installed(arguments.work, arguments.cutline, objects))


def main() -> int:
    """Measures and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", type=Path, default=Path("target/release/cutline"), help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("target/linux-vm"), help="the machine's folder (default: %(default)s)")
    parser.add_argument("--bpf", type=Path, default=Path("target/bpf"), help="folder of the objects (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of the kernel in each case, at least 2 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="machines at a time (default: one a core)")
    arguments = parser.parse_args()
    if arguments.seeds < 2:
        parser.error("--seeds: at least 2")
    try:
        built = machine(arguments)
    except NotRun as reason:
        print(f"validate-qdisc: not run: {reason}")
        return 0
    except Fault as reason:
        print(f"validate-qdisc: {reason}", file=sys.stderr)
        return 1

    queues = [queue for queue in QUEUES if queue.name != "dualpi2" or linux_vm.has_module(built.folder, "sch_dualpi2")]
    cases = {name: [(mix, queue) for mix in mixes for queue in queues if queue.has(mix)] for name, mixes in EXPERIMENTS.items()}
    seeds = range(1, arguments.seeds + 1)
    try:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            outputs = pool.map(lambda name: built.runs(name, cases[name], seeds), cases)
            found = {case: runs for output in outputs for case, runs in output.items()}
    except (RuntimeError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"validate-qdisc: {error}: the output of the machines is in {built.folder}/qdisc-*.log", file=sys.stderr)
        return 1

    linux, cutline, rows, faults, accounted = {}, {}, [], [], 0
    for mix, queue in (case for of_experiment in cases.values() for case in of_experiment):
        name = mix.name, queue.name
        linux[name] = [of_kernel(run, mix) for run in found[name]]
        cutline[name] = [of_simulator(run, mix) for run in cutline_runs(str(arguments.cutline), mix, queue, SIMULATED)]
        rows.append(compare(mix, queue, "linux", cutline[name], linux[name], TOLERANCES))
        if is_ours(queue):
            accounted += arguments.seeds
            wrong = (fault(run) for run in found[name])
            faults += [f"{mix.name} {queue.name}, seed {seed}: {why}" for seed, why in zip(seeds, wrong, strict=True) if why]
    if faults:
        for line in faults:
            print(f"validate-qdisc: {line}", file=sys.stderr)
        return 1

    statements = judged(findings(linux, cutline), linux, cutline)
    about = {"kernel": built.version, "seeds": arguments.seeds, "simulated": len(SIMULATED)}
    text, unexplained = page(statements, rows, linux, cutline, about | {"queues": [queue.name for queue in QUEUES], "accounted": accounted})
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "qdisc.md").write_text(text)
    document = about | {"frame": FRAME, "tolerance": TOLERANCES, "findings": statements, "cases": rows}
    (arguments.out / "qdisc.json").write_text(json.dumps(document, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
