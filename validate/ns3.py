#!/usr/bin/env python3
"""Runs the same flows through Cutline's queues and through those of ns-3, and compares the results.

    python3 validate/ns3.py --cutline target/release/cutline --out docs/validation

writes `ns3.md` for people and `ns3.json` for programs. It builds `ns3/dumbbell.cc` first. A measure agrees when the whole 95 %
interval of the difference lies within what matters (`peer.TOLERANCE`). A difference without a note (`ns3_page.py`) makes this
program fail.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from linux_mixes import FRAME, Queue
from ns3_build import build
from ns3_mixes import MIXES, QUEUES, Ns3Mix
from ns3_page import page
from peer import TOLERANCE, Run, chosen, compare, cutline_runs, of_bulk


def ns3_run(program: Path, mix: Ns3Mix, queue: Queue, seed: int) -> Run:
    """One run of ns-3."""
    command = [str(program), *mix.arguments(seed, queue)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}
    goodputs = [value for name, value in found.items() if name.startswith("goodput.")]
    run = {name: value for name, value in found.items() if not name.startswith("goodput.")}
    return run | (of_bulk(goodputs) if goodputs else {})


def main() -> int:
    """Measures, writes both files, and fails if a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("target/ns3"), help="where to build (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="replications of each mix, at least 2 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cases at a time (default: one a core)")
    parser.add_argument("--mix", action="append", help="only this mix; may be repeated")
    parser.add_argument("--queue", action="append", help="only this queue; may be repeated")
    arguments = parser.parse_args()
    mixes = chosen(parser, "mix", MIXES, arguments.mix)
    queues = chosen(parser, "queue", QUEUES, arguments.queue)
    seeds = range(1, arguments.seeds + 1)
    program = build("dumbbell", arguments.work)

    def work(case: tuple[Ns3Mix, Queue]) -> dict:
        theirs = [ns3_run(program, *case, seed) for seed in seeds]
        found = compare(*case, "ns3", cutline_runs(arguments.cutline, *case, seeds), theirs)
        print(f"{case[0].name} {case[1].name}", file=sys.stderr)
        return found

    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = list(pool.map(work, [(mix, queue) for mix in mixes for queue in queues]))
    text, unexplained = page(found, mixes, arguments.seeds)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "ns3.md").write_text(text)
    about = {"seeds": arguments.seeds, "packet": FRAME, "tolerance": TOLERANCE, "cases": found}
    (arguments.out / "ns3.json").write_text(json.dumps(about, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
