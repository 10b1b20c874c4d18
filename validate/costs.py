#!/usr/bin/env python3
"""Compares the cost of scenarios between two builds, in instructions, which do not depend on other work on the machine.

    cargo bench -p cutline-scenario --profile trial --bench scenarios --no-run   # in each of two trees
    python3 validate/costs.py measure target/trial/deps/scenarios-... after.json
    python3 validate/costs.py compare before.json after.json

`measure --event-loop` simulates all networks event by event, so that two runs of one build compare the engines.

`measure` simulates the first point of each file in `examples` and `experiments` for SECONDS seconds under callgrind (Debian's
package `valgrind`), one after the other. A file that the simulator refuses, or that cannot be shortened, is left out with
its reason. `compare` writes a Markdown table of the files that both builds simulated with the same number of packets.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ["warm-up=1 s", "interval=500 ms"]
OTHERS = {"study.toml", "figures.toml", "target.toml"}


def scenarios() -> list[Path]:
    """The files of scenarios, without those of studies and programs."""
    files = [path for folder in ("examples", "experiments") for path in sorted((ROOT / folder).rglob("*.toml"))]
    return [path for path in files if path.name not in OTHERS and path.parent.name not in ("programs", "specifications")]


def measure(bench: str, path: Path, seconds: int, words: list[str]) -> dict[str, object]:
    """Simulates a file. Returns what the benchmark printed, with the instructions of its process."""
    name = str(path.relative_to(ROOT))
    settings = [*SETTINGS, f"duration={seconds} s", f"measure-until={seconds} s"]
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", bench, name, *settings, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        return {"file": name, "error": done.stderr.strip().splitlines()[-1] if done.stderr else "no output"}
    return {**json.loads(done.stdout), "instructions": int(found.group(1))}


def compare(before: list[dict[str, object]], after: list[dict[str, object]]) -> int:
    """Prints the table. Returns the number of files whose packets differ."""
    old = {row["file"]: row for row in before if "error" not in row}
    new = {row["file"]: row for row in after if "error" not in row}
    common = [name for name in old if name in new]
    differ = [name for name in common if old[name]["packets"] != new[name]["packets"]]
    print("| scenario | engine | packets | before, million | after, million | after / before |")
    print("| --- | --- | --- | --- | --- | --- |")
    ratios = []
    for name in (name for name in common if name not in differ):
        one, other = old[name], new[name]
        ratios.append(other["instructions"] / one["instructions"])
        engine = "stages" if other["in_stages"] else "event loop"
        millions = " | ".join(f"{row['instructions'] / 1e6:,.0f}" for row in (one, other))
        print(f"| {name.removesuffix('.toml')} | {engine} | {other['packets']:,} | {millions} | {ratios[-1]:.3f} |")
    if ratios:
        print(f"\n{len(ratios)} files, ratios from {min(ratios):.3f} to {max(ratios):.3f}", file=sys.stderr)
    for name in differ:
        print(f"{name}: {old[name]['packets']} packets before, {new[name]['packets']} after", file=sys.stderr)
    return len(differ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("bench", help="the executable of the benchmark `scenarios`")
    measuring.add_argument("out", type=Path, help="the file to write")
    measuring.add_argument("--seconds", type=int, default=4, help="simulated seconds of each file")
    measuring.add_argument("--event-loop", action="store_true", help="simulate all networks event by event")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "compare":
        rows = (json.loads(path.read_text()) for path in (arguments.before, arguments.after))
        return os.EX_DATAERR if compare(*rows) else os.EX_OK
    found = []
    words = ["event-loop"] if arguments.event_loop else []
    for path in scenarios():
        found.append(measure(os.path.abspath(arguments.bench), path, arguments.seconds, words))
        print(found[-1], file=sys.stderr)
        arguments.out.write_text(json.dumps(found, indent=1))
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
