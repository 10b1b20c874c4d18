#!/usr/bin/env python3
"""Runs the suites and judges a queue in each of their cells.

    python3 experiments/suites/judge.py target/trial/cutline            the judged seeds, 9101 to 9103
    python3 experiments/suites/judge.py target/trial/cutline --seed 101 --seeds 2       seeds for tuning
    ... --queue sieve --queue cake --suite drops --all --page cells.md

A cell is a point of a scenario's sweep without its queue. The rule, fixed before any run: a cell holds for a queue if, on
average over the seeds,

- the 99th percentile of the wait of sparse packets (the flows `sparse` and `scalable`) is not above the least of fq-codel,
  cake and dual-pi2 by more than 5 % or 1 ms, whichever is more, and
- the utilisation of the link is not below the largest of theirs by more than 0.01.

Two further numbers are printed and not judged: the 99th percentile of the bulk packets' wait, and the least goodput of a bulk
transfer over the largest.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

RIVALS = ["fq-codel", "cake", "dual-pi2"]
SUITES = ["single", "pairs", "drops", "bursts", "crowd", "mobile", "home", "scalable"]
SPARSE = ["sparse", "scalable"]
FACTOR, WITHIN_MS, WITHIN_USE = 1.05, 1.0, 0.01


def run(cutline, folder, suite, options):
    """The runs of a suite, as the command prints them."""
    command = [cutline, "run", str(folder / f"{suite}.toml"), "--json", "--no-store", "--seed", str(options.seed)]
    command += ["--seeds", str(options.seeds)]
    key = "link.bottleneck.queue" if suite == "pairs" else "dumbbell.queue"
    if options.only:
        command += ["--set", f'sweep."{key}"={json.dumps(options.only)}']
    for change in options.set:
        command += ["--set", change]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["runs"], key


def numbers(found):
    """What is judged and shown of a run."""
    flows = found["flows"]
    p99 = {name: max((flow["queuing_p99_ms"] or 0 for flow in flows if flow["group"] == name), default=None) for name in SPARSE}
    bulk = [flow for flow in flows if flow["group"] in ("bulk", "near", "far", "scalable")]
    rates = [flow["goodput_bps"] for flow in bulk]
    link = max(found["queues"], key=lambda queue: queue["delay_mean_ms"] or 0)
    numbers = {f"{name} p99": value for name, value in p99.items() if value is not None}
    numbers["use"] = link["utilisation"]
    numbers["bulk p99"] = max((flow["queuing_p99_ms"] or 0 for flow in bulk), default=0)
    numbers["least/most"] = min(rates) / max(rates) if rates and max(rates) > 0 else 0
    numbers["bulk loss"] = max((flow["loss_ratio"] or 0 for flow in bulk), default=0)
    return numbers


def label(key, value):
    name = key.removeprefix("dumbbell.").removeprefix("link.").removeprefix("flow.")
    text = str(value)
    return f"{name} " + (text if len(text) < 40 else f"{text[:18]}...{sum(map(ord, text)) % 997}")


def collect(cutline, folder, suites, options):
    """Means over the seeds, by cell and queue."""
    cells = defaultdict(dict)
    for suite in suites:
        runs, key = run(cutline, folder, suite, options)
        found = defaultdict(list)
        for one in runs:
            settings = one["settings"]
            cell = ", ".join(label(k, v) for k, v in settings.items() if k != key)
            found[(f"{suite}: {cell}", settings[key])].append(numbers(one))
        for (cell, queue), each in found.items():
            names = {name for one in each for name in one}
            cells[cell][queue] = {name: sum(one[name] for one in each) / len(each) for name in sorted(names)}
    return cells


def judge(by_queue, queue):
    """How much worse a queue is than the rule allows, 0 if the cell holds, and why."""
    own, why, worst = by_queue[queue], [], 0.0
    rivals = [by_queue[rival] for rival in RIVALS]
    for name in (f"{sparse} p99" for sparse in SPARSE):
        if name not in own:
            continue
        best = min(rival[name] for rival in rivals)
        allowed = max(best * FACTOR, best + WITHIN_MS)
        if own[name] > allowed:
            why.append(f"{name} {own[name]:.2f} ms, best {best:.2f}")
            worst = max(worst, own[name] / allowed - 1)
    best = max(rival["use"] for rival in rivals)
    if own["use"] < best - WITHIN_USE:
        why.append(f"use {own['use']:.3f}, best {best:.3f}")
        worst = max(worst, (best - WITHIN_USE) / max(own["use"], 1e-9) - 1)
    return worst, "; ".join(why)


def page(cells, queues):
    """The table of lost cells as Markdown."""
    lines = []
    for queue in queues:
        lost = sorted(((*judge(cell, queue), name) for name, cell in cells.items()), reverse=True)
        lost = [one for one in lost if one[0] > 0]
        lines += [f"**{queue}**: {len(cells) - len(lost)} of {len(cells)} cells hold.", "", "| cell | lost by |", "| --- | --- |"]
        lines += [f"| {name} | {why} |" for _, why, name in lost] + [""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cutline")
    parser.add_argument("--seed", type=int, default=9101)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--suite", action="append")
    parser.add_argument("--queue", action="append", help="judged queues; by default sieve")
    parser.add_argument("--only", action="append", help="run these queues alone; the others are read from --rivals")
    parser.add_argument("--rivals", type=Path, help="a file of numbers, written if --only is not given, else read")
    parser.add_argument("--set", action="append", default=[], help="as of cutline run")
    parser.add_argument("--all", action="store_true", help="print every cell")
    parser.add_argument("--page", type=Path, help="write the lost cells as Markdown")
    options = parser.parse_args()
    queues = options.only or options.queue or ["sieve"]
    cells = collect(options.cutline, Path(__file__).parent, options.suite or SUITES, options)
    if options.rivals and options.only:
        for cell, by_queue in json.loads(options.rivals.read_text()).items():
            if cell in cells:
                cells[cell] = {**by_queue, **cells[cell]}
    elif options.rivals:
        options.rivals.write_text(json.dumps(cells))
    for cell, by_queue in cells.items():
        verdicts = [judge(by_queue, queue) for queue in queues]
        if options.all or any(worst > 0 for worst, _ in verdicts):
            print(cell)
            for queue, values in by_queue.items():
                verdict = judge(by_queue, queue)[1] if queue in queues else ""
                shown = "  ".join(f"{name} {value:.3f}" for name, value in values.items())
                print(f"    {queue:14} {shown}  {'LOST ' if verdict else ''}")
    for queue in queues:
        held = sum(judge(by_queue, queue)[0] == 0 for by_queue in cells.values())
        print(f"{queue}: {held} of {len(cells)} cells hold")
    if options.page:
        options.page.write_text(page(cells, queues))


if __name__ == "__main__":
    main()
