#!/usr/bin/env python3
"""The README's figure and the numbers beside it, from the simulations that it names: `make validate-readme`."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RATES = {"Gbit/s": 1e3, "Mbit/s": 1, "kbit/s": 1e-3}
"""Units of a figure's axis, in Mbit/s."""
SCENARIO, FIGURE = "examples/call.toml", "docs/figures/call.svg"


def series(cutline: str, results: Path, measure: str) -> dict[tuple[str, str], dict[int, float]]:
    """Means of a measure (ms, % or Mbit/s), by queue and flow, each by the number of transfers."""
    command = [cutline, "plot", str(results), "--kind", "sweep", "--by", "flow.transfer.count", "--measure", measure, "--json"]
    panel = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["panels"][0]
    unit = RATES.get(panel["y"], 1)
    found = {}
    for line in panel["series"]:
        aqm, flow = re.fullmatch(r"aqm ([\w-]+), (\w+)", line["name"]).groups()
        found[aqm, flow] = {round(point["x"]): unit * point["y"] for point in line["points"]}
    return found


def sentences(waits: dict, losses: dict, goodput: dict) -> list[str]:
    """The README's rows and sentences that state numbers, with the measured ones."""

    queues = ("sieve", "fq-codel", "cake")

    def row(transfers: int, measured: str, means: dict, unit: str) -> str:
        cells = [f"{means[aqm, 'transfer'][transfers]:.0f} {unit}" for aqm in queues]
        return f"| {transfers} | {measured} | {' | '.join(cells)} |"

    def rate(aqm: str) -> str:
        return f"{goodput[aqm, 'transfer'][1]:.1f}"

    return [
        row(1, "queuing delay, 99th percentile", waits, "ms"),
        row(100, "queuing delay, 99th percentile", waits, "ms"),
        row(100, "loss", losses, "%"),
        f"A single transfer gets {rate('sieve')} Mbit/s with Sieve, and {rate('fq-codel')} Mbit/s with FQ-CoDel",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cutline", default="target/release/cutline", help="the command to run")
    cutline = str(Path(parser.parse_args().cutline).resolve())
    readme = " ".join((ROOT / "README.md").read_text().split())
    with tempfile.TemporaryDirectory() as folder:
        results, picture = Path(folder) / "call", Path(folder) / "call.svg"
        subprocess.run([cutline, "run", ROOT / SCENARIO, "--results", folder], check=True, stdout=subprocess.DEVNULL)
        measures = ("queuing_p99_ms", "loss_ratio", "goodput_bps")
        wanted = sentences(*(series(cutline, results, measure) for measure in measures))
        plot = [cutline, "plot", results, "--kind", "sweep", "--by", "flow.transfer.count", "--measure", "queuing_p99_ms"]
        subprocess.run([*plot, "-o", picture], check=True, stdout=subprocess.DEVNULL)
        problems = [f"README.md lacks: {sentence}" for sentence in wanted if sentence not in readme]
        if picture.read_bytes() != (ROOT / FIGURE).read_bytes():
            problems.append(f"{FIGURE} differs from the one that the README's commands draw")
    print("\n".join(problems or ["the README states what its commands measure"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
