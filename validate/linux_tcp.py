#!/usr/bin/env python3
"""Compares the simulated TCP with Linux's: the same scenario in the simulator and, with real TCP, in the laboratory.

    sudo python3 validate/linux_tcp.py --cutline target/release/cutline --out docs/validation

writes `linux-tcp.md` for people and `linux-tcp.json` for programs. Both sides have the same queues, of the same code, so what differs
is TCP. Rule and tolerances (`TOLERANCE`) are fixed before the run: a measure is the same when the whole 95 % interval of the
difference lies inside the tolerance, differs when it lies outside, and is unclear otherwise. What differs and has no line in `NOTES`
makes this program fail.

The laboratory runs in real time: sixty seconds a run, several at a time. It needs root. `--keep DIR` keeps the runs, and repeats none
whose timing is valid when it is called again.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from linux_rows import Measure, Run, kernel, row, table, verdict_rules

QUEUES = {
    "drop-tail": '"drop-tail"\nlimit = "800 packets"',
    "PI": '"pi"\nlimit = "800 packets"\nq-ref = "200 packets"\na = 1.822e-5\nb = 1.816e-5\nfrequency = "170 Hz"',
    "PIE": '"pie"\nlimit = "800 packets"',
    "CoDel": '"codel"\nlimit = "800 packets"',
    "FQ-CoDel": '"fq-codel"\nlimit = "800 packets"',
    "Adaptive RED": '"ared"\nlimit = "800 packets"',
}
CONTROLS = {"Reno": "newreno", "CUBIC": "cubic"}

BULK, AUDIO = 75, 25
SECONDS, WARM_UP = 60, 20

SCENARIO = """
name = "linux-tcp"
title = "{title}"
seed = 1
seeds = {seeds}
duration = "{seconds} s"
warm-up = "{warm_up} s"
interval = "1 s"

[dumbbell]
rate = "15 Mbit/s"
delay = "50 ms"
access-rate = "50 Mbit/s"
access-delay = "50 ms"
queue = "bottleneck"

[queue.bottleneck]
aqm = {queue}

[[flow]]
name = "bulk"
count = {bulk}
class = "file-transfer"
file-size = "1250 KB"
start = {{ from = "0 s", to = "1 s" }}
transport = {{ protocol = "tcp", defaults = "linux", congestion-control = "{control}", mss = "1000 B", header = "0 B" }}
app = {{ kind = "bulk" }}
series = false
distributions = "group"

[[flow]]
name = "audio"
count = {audio}
class = "audio"
start = {{ from = "0 s", to = "1 s" }}
transport = {{ protocol = "udp" }}
app = {{ kind = "cbr", rate = "128 kbit/s", size = "500 B" }}
series = false
distributions = "group"
"""


MEASURES = {
    "timeouts": Measure("timeouts of all transfers", 0.5, 10),
    "retransmissions": Measure("retransmissions, % of the sent packets", 0.1, 0.1),
    "drops": Measure("dropped at the queue, %", 0.1, 0.1),
    "queue": Measure("mean queue, packets", 0.1, 2),
    "utilisation": Measure("utilisation, %", 0.01, 0),
    "bulk": Measure("goodput of a transfer, kbit/s", 0.03, 0),
    "bulk-p50": Measure("wait of a transfer's packets, median, ms", 0.1, 2),
    "bulk-p99": Measure("wait of a transfer's packets, 99th percentile, ms", 0.1, 5),
    "audio-loss": Measure("loss of audio, %", 0.15, 0.1),
    "audio-p50": Measure("wait of audio, median, ms", 0.1, 2),
    "audio-p99": Measure("wait of audio, 99th percentile, ms", 0.1, 5),
}
TOLERANCE = {name: {"share": measure.share, "least": measure.least} for name, measure in MEASURES.items()}

OVERSHOOT = (
    "the drops are the same, so the additional retransmissions belong to the first slow start, which is counted here and not among the "
    "drops. It overshoots further in the simulation, which lacks Linux's first sample of the round-trip time from the handshake and its "
    "growing receive buffer"
)
LATER = (
    "the drops are the same or fewer, and the queue is longer: the simulated CUBIC reaches its loss later. The rule that causes this has "
    "not been found"
)

NOTES: dict[tuple[str, str, str], str] = {
    ("CUBIC", "drop-tail", "retransmissions"): OVERSHOOT,
    ("CUBIC", "PIE", "retransmissions"): OVERSHOOT,
    ("CUBIC", "CoDel", "queue"): LATER,
    ("CUBIC", "FQ-CoDel", "bulk-p99"): LATER,
}
"""The known cause of a difference: by control, queue and measure."""


def runs(command: list[str], arguments: argparse.Namespace, control: str, queue: str, keep: Path) -> list[Run]:
    """All runs of one side."""
    text = SCENARIO.format(
        title=f"{BULK} {control} and {AUDIO} audio over {queue}", seeds=arguments.seeds, seconds=SECONDS, warm_up=WARM_UP,
        queue=QUEUES[queue], bulk=BULK, audio=AUDIO, control=CONTROLS[control],
    )  # fmt: skip
    folder = keep / f"{control}-{queue}".lower().replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    scenario = folder / "linux-tcp.toml"
    scenario.write_text(text)
    done = subprocess.run(
        [arguments.cutline, *command, str(scenario), "--json", "--results", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(done.args)}: {done.stderr.strip()}")
    found = json.loads(done.stdout)["runs"]
    for run in found:
        if not run.get("timing", {}).get("timing_ok", True):
            sys.exit(
                f"{control} over {queue}, seed {run['seed']}: the timing is not valid, {run['timing']['problem']}; "
                "the same command with --keep DIR repeats only such runs"
            )
    return [measures(run) for run in found]


def measures(run: dict) -> Run:
    """The compared measures of a run."""
    queue = next(queue for queue in run["queues"] if queue["link"] == "r1->r2")
    bulk, audio = ([flow for flow in run["flows"] if flow["group"] == group] for group in ("bulk", "audio"))

    def total(flows: list[dict], name: str) -> float:
        return sum(flow[name] for flow in flows)

    return {
        "timeouts": total(bulk, "timeouts"),
        "retransmissions": 100 * total(bulk, "retransmissions") / total(bulk, "packets_sent"),
        "drops": 100 * queue["drop_ratio"],
        "queue": queue["backlog_mean_packets"],
        "utilisation": 100 * queue["utilisation"],
        "bulk": total(bulk, "goodput_bps") / len(bulk) / 1e3,
        "bulk-p50": bulk[0]["queuing_p50_ms"],
        "bulk-p99": bulk[0]["queuing_p99_ms"],
        "audio-loss": 100 * total(audio, "packets_dropped") / total(audio, "packets_sent"),
        "audio-p50": audio[0]["queuing_p50_ms"],
        "audio-p99": audio[0]["queuing_p99_ms"],
    }


def compare(control: str, queue: str, ours: list[Run], linux: list[Run]) -> dict:
    """The rows of a case."""
    return {"control": control, "queue": queue, "rows": [row(name, measure, ours, linux) for name, measure in MEASURES.items()]}


HEAD = """\
# The simulated TCP against Linux's

{bulk} bulk transfers and {audio} audio conferences of 128 kbit/s share 15 Mbit/s, with round trips
of 300 ms without waiting. Runs take {seconds} s, of which the first {warm_up} are not measured,
with {seeds} seeds on each side. On one side everything is simulated, with `defaults = "linux"`. On
the other side the transfers are Linux's TCP ({kernel}) in the laboratory,
with real packets in real time over the same queues with the same code.
`sudo make validate-linux-tcp` rewrites this page in about {minutes} minutes.

{verdicts}
Of {rows} measures {same} are the same, {unclear} are unclear, {differs} differ.

Windows have five to ten segments here, so rounding to whole segments matters. Linux halves windows
to whole segments, counts the acknowledgement that ends recovery towards growth, and computes CUBIC
in segments. Without these three rules the simulation had up to a quarter fewer drops for the same
goodput.

"""


def page(cases: list[dict], arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """The page, and the measures that differ without an explanation."""
    unexplained: list[str] = []
    verdicts = [row["verdict"] for case in cases for row in case["rows"]]
    counts = {name: verdicts.count(name) for name in ("same", "unclear", "differs")}
    minutes = round(len(cases) * arguments.seeds * (SECONDS + 10) / arguments.jobs / 60)
    parts = [
        HEAD.format(verdicts=verdict_rules(), bulk=BULK, audio=AUDIO, seconds=SECONDS, warm_up=WARM_UP, seeds=arguments.seeds, kernel=kernel(),
                    minutes=minutes, rows=len(verdicts), **counts)
    ]  # fmt: skip
    for case in cases:
        control, queue = case["control"], case["queue"]
        text, open_measures = table(case["rows"], MEASURES, lambda name: NOTES.get((control, queue, name), ""))
        parts.append(f"## {control} over {queue}\n\n{text}")
        unexplained += [f"{control} over {queue}: {name}" for name in open_measures]
    return "".join(parts).rstrip() + "\n", unexplained


def main() -> int:
    """Measures, writes both files, and fails if a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/validation"), help="where to write (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="replications, at least 2 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=5, help="runs of the laboratory at a time (default: %(default)s)")
    parser.add_argument("--queue", action="append", choices=QUEUES, help="only this queue; may be repeated")
    parser.add_argument("--control", action="append", choices=CONTROLS, help="only this control; may be repeated")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    arguments = parser.parse_args()
    if arguments.seeds < 2:
        parser.error("--seeds: at least 2")
    cases = []
    with tempfile.TemporaryDirectory() as temporary:
        keep = arguments.keep or Path(temporary)
        for control in arguments.control or CONTROLS:
            for queue in arguments.queue or QUEUES:
                print(f"{control} over {queue}", file=sys.stderr, flush=True)
                simulated = runs(["run", "--force"], arguments, control, queue, keep / "simulated")
                lab = ["lab", "run", "--resume", "--jobs", str(arguments.jobs)]
                cases.append(compare(control, queue, simulated, runs(lab, arguments, control, queue, keep / "lab")))
    text, unexplained = page(cases, arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "linux-tcp.md").write_text(text)
    document = {"seeds": arguments.seeds, "tolerance": TOLERANCE, "cases": cases}
    (arguments.out / "linux-tcp.json").write_text(json.dumps(document, indent=1) + "\n")
    for row in unexplained:
        print(f"not explained: {row}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
