#!/usr/bin/env python3
"""Runs the suites and judges a queue in each of their cells.

    python3 experiments/suites/judge.py target/trial/cutline            the judged seeds, those of each file
    python3 experiments/suites/judge.py target/trial/cutline --seed 101 --seeds 2       seeds for tuning
    ... --queue sieve --queue cake --suite drops --all --page cells.md
    ... --rivals numbers.json; ... --rivals numbers.json --only pie --only fq-pie          other AQMs, with their defaults

A cell is a point of a scenario's sweep without its queue. The rule, fixed before any run: a cell holds for a queue if, on
average over the seeds,

- the 99th percentile of the wait of sparse packets (the flows `sparse`, `sparse-...` and `scalable`) is not above the least of
  fq-codel, cake and dual-pi2 by more than 5 % or 1 ms, whichever is more, and
- the utilisation of a link with the queue is not below the largest of theirs by more than 0.01. It is the link `r1->r2` if no
  other one is named in `LINKS`.

Further numbers are printed and not judged: the 99th percentile of the bulk packets' wait, the least goodput of a transfer over
the largest, their loss, the mean goodput of scalable and background transfers, of liars, and of transfers beside or in a tunnel over
that of the others (`bulk`), the 99th percentile of the wait of a video and its loss, and the mean time of an object or of a short
transfer.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

RIVALS = ["fq-codel", "cake", "dual-pi2"]
SUITES = ["single", "pairs", "drops", "bursts", "crowd", "mobile", "home", "scalable"]
SUITES += ["friendly", "initial", "unresponsive", "rtt", "absorb", "sizes", "levels", "varying", "capacity", "mix", "both-ways"]
SUITES += ["multi", "parking", "prague", "gigabit", "asymmetric", "slotted", "slots", "gaming", "household", "thousand", "churn"]
SUITES += ["background"]
SUITES += ["nqb", "stalls", "falls", "recovery", "controls", "gigabit-prague", "prague-slots", "one-end", "schemes"]
SUITES += ["completion", "tunnel"]
BOTH = {"use": "r1->r2", "use back": "r2->r1"}
LINKS = {
    "both-ways": BOTH,
    "asymmetric": BOTH,
    "mix": {"use": "r1->r2"},
    "multi": {"use": "m->r"},
    "parking": {"use": "r0->r1", "use of hop 2": "r1->r2", "use of hop 3": "r2->r3"},
    "schemes": {"use": "l->m", "use of hop 2": "m->r"},
}
# Groups whose flows are compared with each other, and those whose transfers have an end.
BULK = ["bulk", "near", "far", "scalable", "first", "second", "large", "small", "liar"]
SHORT = ["short", "web"]
VIDEO = ["video", "adaptive"]
FACTOR, WITHIN_MS, WITHIN_USE = 1.05, 1.0, 0.01


def run(cutline, folder, suite, options):
    """The runs of a suite, as the command prints them."""
    command = [cutline, "run", str(folder / f"{suite}.toml"), "--json", "--no-store"]
    if options.seed:
        command += ["--seed", str(options.seed)]
    if options.seeds:
        command += ["--seeds", str(options.seeds)]
    scenario = tomllib.loads((folder / f"{suite}.toml").read_text())
    key = next(key for key, values in scenario["sweep"].items() if RIVALS[0] in values)
    if options.only:
        command += ["--set", f'sweep."{key}"={json.dumps(options.only)}']
    # Suites that sweep the name of the AQM have no tables of queues.
    tables = scenario.get("queue", {})
    for queue in options.only or []:
        if RIVALS[0] in tables and queue not in tables:
            limit = tables[RIVALS[0]]["limit"]
            command += ["--set", f"queue.{queue}={{aqm={json.dumps(queue)},limit={json.dumps(limit)}}}"]
    for change in options.set:
        command += ["--set", change]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["runs"], key


def is_sparse(group):
    return group == "scalable" or group.split("-")[0] == "sparse"


def numbers(found, links):
    """The judged and shown numbers of a run."""
    flows = found["flows"]
    numbers = {}
    for flow in flows:
        if is_sparse(flow["group"]):
            name = f"{flow['group']} p99"
            numbers[name] = max(numbers.get(name, 0), flow["queuing_p99_ms"] or 0)
    use = {queue["link"]: queue["utilisation"] for queue in found["queues"]}
    numbers.update({name: use[link] for name, link in links.items()})
    bulk = [flow for flow in flows if flow["group"] in BULK]
    rates = [flow["goodput_bps"] for flow in bulk]
    numbers["bulk p99"] = max((flow["queuing_p99_ms"] or 0 for flow in bulk), default=0)
    numbers["least/most"] = min(rates) / max(rates) if rates and max(rates) > 0 else 0
    numbers["bulk loss"] = max((flow["loss_ratio"] or 0 for flow in bulk), default=0)
    others = [flow["goodput_bps"] for flow in flows if flow["group"] == "bulk"]
    for group in ("scalable", "background", "liar", "prague", "outside"):
        own = [flow["goodput_bps"] for flow in flows if flow["group"] == group]
        if own and others:
            numbers[f"{group}/bulk"] = sum(own) / len(own) / max(sum(others) / len(others), 1)
    video = [flow for flow in flows if flow["group"] in VIDEO]
    if video:
        numbers["video p99"] = max(flow["queuing_p99_ms"] or 0 for flow in video)
        numbers["video loss"] = max(flow["loss_ratio"] or 0 for flow in video)
    short = [flow["transfer_mean_ms"] for flow in flows if flow["group"] in SHORT and flow["transfer_mean_ms"]]
    if short:
        numbers["short ms"] = sum(short) / len(short)
    return numbers


def label(key, value):
    name = key.removeprefix("dumbbell.").removeprefix("link.").removeprefix("flow.").removeprefix("topology.")
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
            found[(f"{suite}: {cell}", settings[key])].append(numbers(one, LINKS.get(suite, {"use": "r1->r2"})))
        for (cell, queue), each in found.items():
            names = {name for one in each for name in one}
            cells[cell][queue] = {name: sum(one[name] for one in each) / len(each) for name in sorted(names)}
    return cells


def judge(by_queue, queue):
    """The excess of a queue over the allowed value of the rule, 0 if the cell holds, and the reason."""
    own, why, worst = by_queue[queue], [], 0.0
    rivals = [by_queue[rival] for rival in RIVALS]
    for name in (name for name in own if is_sparse(name.split()[0])):
        best = min(rival[name] for rival in rivals)
        allowed = max(best * FACTOR, best + WITHIN_MS)
        if own[name] > allowed:
            why.append(f"{name} {own[name]:.2f} ms, best {best:.2f}")
            worst = max(worst, own[name] / allowed - 1)
    for name in (name for name in own if name.startswith("use")):
        best = max(rival[name] for rival in rivals)
        if own[name] < best - WITHIN_USE:
            why.append(f"{name} {own[name]:.3f}, best {best:.3f}")
            worst = max(worst, (best - WITHIN_USE) / max(own[name], 1e-9) - 1)
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
    parser.add_argument("--seed", type=int, help="the first seed; by default that of each file")
    parser.add_argument("--seeds", type=int, help="the number of seeds; by default that of each file")
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
        by_suite = defaultdict(list)
        for cell, by_queue in cells.items():
            by_suite[cell.split(":")[0]].append(judge(by_queue, queue)[0] == 0)
        held = sum(sum(each) for each in by_suite.values())
        shown = ", ".join(f"{suite} {sum(each)}/{len(each)}" for suite, each in by_suite.items())
        print(f"{queue}: {held} of {len(cells)} cells hold ({shown})")
    if options.page:
        options.page.write_text(page(cells, queues))


if __name__ == "__main__":
    main()
