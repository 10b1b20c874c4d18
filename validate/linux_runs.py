"""Runs of the virtual machine, which its folder keeps, and their measures."""

import hashlib
import json
from pathlib import Path

import linux_vm
from linux_mixes import RATE_MBPS, Mix, Queue
from peer import Run, mean, of_bulk

SECONDS_OF_HOST = 20
"""The longest that a second of the virtual machine may take, s."""
SOURCES = {name: linux_vm.HERE / "linux" / name for name in ("init.sh", "load.c")}


def plan(mix: Mix, queue: Queue, seeds: range) -> list[str]:
    """The lines of the machine's plan, one for each seed."""
    rate = "" if mix.rate_mbps == RATE_MBPS else f"@{mix.rate_mbps}"
    return [f"{mix.name}-{queue.name}-{seed}|{mix.delay_ms}ms{rate}|{queue.tc_at(mix.rate_mbps)}|{mix.load(queue, seed)}" for seed in seeds]


def machine_runs(folder: Path, name: str, lines: list[str], seconds: float, version: str, more: dict[str, Path]) -> list[dict]:
    """The output for each line of a plan, which takes so many seconds in the machine, with more files in it.

    The output of a machine with the same plan, kernel and files is taken again.
    """
    file = folder / f"{name}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    conditions = {"plan": lines, "kernel": version} | ({"files": digest(more | SOURCES)} if more else {})
    if any(kept.get(condition) != value for condition, value in conditions.items()):
        booted, runs = linux_vm.measure(folder, name, lines, 120 + SECONDS_OF_HOST * seconds, more)
        kept = conditions | {"kernel": booted, "runs": [runs[line.partition("|")[0]] for line in lines]}
        file.write_text(json.dumps(kept) + "\n")
    return kept["runs"]


def digest(files: dict[str, Path]) -> str:
    """The digest of the paths and contents of files."""
    found = hashlib.sha256()
    for name, path in sorted(files.items()):
        found.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def kernel_run(found: dict, mix: Mix) -> Run:
    """The measures of one run of the machine."""
    sent = {name: found["end"][name] - found["begin"][name] for name in ("bytes", "packets", "drops")}
    run = {
        "utilisation": sent["bytes"] * 8 / (mix.rate_mbps * 1e6 * found["seconds"]),
        "drops": sent["drops"] / (sent["packets"] + sent["drops"]),
    }
    for name, flows in found["classes"].items():
        run |= {f"{name}.loss": 1 - flows["received"] / flows["sent"]}
        run |= {f"{name}.{quantile}": flows[quantile] for quantile in ("p50", "p99")}
    goodputs = iter(found["goodputs"])
    if mix.bulk:
        run |= of_bulk([next(goodputs) for _ in range(mix.bulk)])
    for tcp in mix.tcp_classes:
        run[f"{tcp.name}.goodput"] = mean([next(goodputs) for _ in range(tcp.count)])
    return run
