#!/usr/bin/env python3
"""Runs the same flows through Cutline's queues and through those of the Linux kernel, and compares the results.

    python3 validate/linux.py --cutline target/release/cutline --out docs/validation

writes `linux.md` for people and `linux.json` for programs. The kernel runs in a virtual machine (`linux_vm.py`), with its own
TCP. A measure agrees when the whole 95 % interval of the difference lies within what matters (`TOLERANCE`). A difference without a note
(`linux_page.py`) makes this program fail.

With `--mix` or `--queue` the other rows of `linux.json` stay as they are. That needs the same kernel, number of runs and
tolerances; otherwise the program ends before it measures anything.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import linux_vm
from linux_mixes import FRAME, MIXES, QUEUES, Mix, Queue
from linux_page import page
from linux_runs import kernel_run, machine_runs, plan
from peer import TOLERANCE, Run, chosen, compare, cutline_runs


def kernel_runs(folder: Path, version: str, mix: Mix, queue: Queue, seeds: range) -> list[Run]:
    """All runs of the kernel of this version."""
    found = machine_runs(folder, f"{mix.name}-{queue.name}", plan(mix, queue, seeds), mix.seconds * len(seeds), version, {})
    return [kernel_run(run, mix) for run in found]


class Other(Exception):
    """The rows of `linux.json` come from other conditions than those of this run."""


def kept(file: Path, about: dict, cases: list[tuple[Mix, Queue]]) -> list[dict]:
    """The rows of an earlier run that this one does not measure; `about` has the conditions, which must be the same."""
    if not file.exists():
        return []
    before = json.loads(file.read_text())
    now = json.loads(json.dumps(about))
    if differing := [name for name in now if before.get(name) != now[name]]:
        raise Other(f"{file} differs from this run in {', '.join(differing)}: measure all mixes and queues, or use another --out")
    measured = {(mix.name, queue.name) for mix, queue in cases}
    return [case for case in before["cases"] if (case["mix"], case["queue"]) not in measured]


def in_order(cases: list[dict]) -> list[dict]:
    """The cases in the order of the mixes, and of the queues in each."""
    mixes, queues = [mix.name for mix in MIXES], [queue.name for queue in QUEUES]
    return sorted(cases, key=lambda case: (mixes.index(case["mix"]), queues.index(case["queue"])))


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
    version = linux_vm.kernel(arguments.work).parent.name

    def work(case: tuple[Mix, Queue]) -> dict:
        theirs = kernel_runs(arguments.work, version, *case, seeds)
        found = compare(*case, "linux", cutline_runs(arguments.cutline, *case, seeds), theirs)
        print(f"{case[0].name} {case[1].name}", file=sys.stderr)
        return found

    cases = [(mix, queue) for mix in mixes for queue in queues if queue.has(mix)]
    if not cases:
        parser.error("none of these queues is measured with any of these mixes")
    file = arguments.out / "linux.json"
    about = {"kernel": [version], "seeds": arguments.seeds, "frame": FRAME, "tolerance": TOLERANCE}
    try:
        others = kept(file, about, cases) if arguments.mix or arguments.queue else []
    except Other as error:
        parser.error(str(error))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = in_order([*pool.map(work, cases), *others])
    arguments.out.mkdir(parents=True, exist_ok=True)
    text, unexplained = page(found, version, arguments.seeds)
    (arguments.out / "linux.md").write_text(text)
    file.write_text(json.dumps(about | {"cases": found}, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
