#!/usr/bin/env python3
"""Runs the same flows through Cutline's queues and through those of the Linux kernel, and compares the results.

    python3 validate/linux.py --cutline target/release/cutline --out docs/validation

writes `linux.md` for people and `linux.json` for programs. The kernel runs in a virtual machine (`linux_vm.py`), with its own
TCP. A measure agrees when the whole 95 % interval of the difference lies within what matters (`TOLERANCE`). A difference without a note
(`linux_page.py`) makes this program fail.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import linux_vm
from linux_mixes import DELAY_MS, FRAME, MIXES, QUEUES, RATE_MBPS, Mix, Queue
from linux_page import page
from peer import TOLERANCE, Run, chosen, compare, cutline_runs, of_bulk

SECONDS_OF_HOST = 20
"""The longest that a second of the virtual machine may take, s."""


def kernel_run(found: dict) -> Run:
    """The measures of one run of the virtual machine."""
    sent = {name: found["end"][name] - found["begin"][name] for name in ("bytes", "packets", "drops")}
    run = {
        "utilisation": sent["bytes"] * 8 / (RATE_MBPS * 1e6 * found["seconds"]),
        "drops": sent["drops"] / (sent["packets"] + sent["drops"]),
    }
    for name, flows in found["classes"].items():
        run |= {f"{name}.loss": 1 - flows["received"] / flows["sent"]}
        run |= {f"{name}.{quantile}": flows[quantile] for quantile in ("p50", "p99")}
    if found["goodputs"]:
        run |= of_bulk(found["goodputs"])
    return run


def kernel_runs(folder: Path, mix: Mix, queue: Queue, seeds: range) -> tuple[str, list[Run]]:
    """All runs of the kernel, and its version. What was measured by the same plan is taken again."""
    name = f"{mix.name}-{queue.name}"
    names = [f"{name}-{seed}" for seed in seeds]
    plan = [f"{line}|{DELAY_MS}ms|{queue.tc}|{mix.load(seed)}" for line, seed in zip(names, seeds, strict=True)]
    file = folder / f"{name}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    if kept.get("plan") != plan:
        timeout = 120 + SECONDS_OF_HOST * mix.seconds * len(seeds)
        version, runs = linux_vm.measure(folder, name, plan, timeout)
        kept = {"plan": plan, "kernel": version, "runs": [runs[line] for line in names]}
        file.write_text(json.dumps(kept) + "\n")
    return kept["kernel"], [kernel_run(run) for run in kept["runs"]]


def main() -> int:
    """Measures and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("target/linux-vm"), help="the machine's folder (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="replications of each mix, at least 2 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="machines at a time (default: one a core)")
    parser.add_argument("--mix", action="append", help="only this mix; may be repeated")
    parser.add_argument("--queue", action="append", help="only this queue; may be repeated")
    arguments = parser.parse_args()
    mixes = chosen(parser, "mix", MIXES, arguments.mix)
    queues = chosen(parser, "queue", QUEUES, arguments.queue)
    seeds = range(1, arguments.seeds + 1)
    arguments.work.mkdir(parents=True, exist_ok=True)
    linux_vm.kernel(arguments.work)

    def work(case: tuple[Mix, Queue]) -> tuple[str, dict]:
        version, theirs = kernel_runs(arguments.work, *case, seeds)
        found = compare(*case, "linux", cutline_runs(arguments.cutline, *case, seeds), theirs)
        print(f"{case[0].name} {case[1].name}", file=sys.stderr)
        return version, found

    cases = [(mix, queue) for mix in mixes for queue in queues if mix.bulk == 0 or not queue.udp_only]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        measured = list(pool.map(work, cases))
    versions = sorted({version for version, _ in measured})
    found = [rows for _, rows in measured]
    arguments.out.mkdir(parents=True, exist_ok=True)
    text, unexplained = page(found, mixes, versions, arguments.seeds)
    (arguments.out / "linux.md").write_text(text)
    about = {"kernel": versions, "seeds": arguments.seeds, "frame": FRAME, "tolerance": TOLERANCE, "cases": found}
    (arguments.out / "linux.json").write_text(json.dumps(about, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
