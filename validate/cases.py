#!/usr/bin/env python3
"""Measures the three cases of docs/guide/cases.md: programs of one host on a slow line, without and with a resource manager.

    sudo python3 validate/cases.py --cutlined target/release/cutlined

A host, a router with a line of 20 Mbit/s and a queue of 100 ms, and a second host, each in a network namespace. The programs are those of
examples/sockets/python/cases.py, with the package `cutline` of this interpreter. Each case is run several times. The table at the end has means
with 95 % confidence intervals. It needs root. The namespaces are removed at the end, and those of a killed run at the start of the next one.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stats import estimate

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/sockets/python/cases.py"
CASES = ("file-server", "video-wall", "robot")
COLUMNS = ("Mbit/s", "lost %", "p50 (ms)", "p99 (ms)")
PREFIX = "cutline-cases-"
RECEIVER, PORT = "192.0.2.129", 5010
# The line carries 20 Mbit/s. The manager shares a little less, so that the queue of the line stays short.
MANAGER = """\
socket = "{folder}/cutlined.sock"

[manager]
socket = "{folder}/manager.sock"
state = "{folder}/manager.state"

[manager.resources]
committed-share = 0.9
user-share = 1

[[manager.interface]]
name = "eth0"
rate = "19 Mbit/s"
"""


def run(*command: str | Path) -> None:
    """Runs a command; its failure is an error with its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with {done.returncode}:\n{done.stdout}{done.stderr}")


def sweep() -> None:
    """Removes the namespaces of killed runs."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    for name, process in re.findall(rf"^({PREFIX}(\d+)-\w+)", listed, re.M):
        if not Path(f"/proc/{process}").exists():
            run("ip", "netns", "del", name)


@contextlib.contextmanager
def hosts() -> Iterator[tuple[str, str]]:
    """The namespaces of the sending and the receiving host, with a router between them."""
    sender, router, receiver = names = [f"{PREFIX}{os.getpid()}-{part}" for part in ("sender", "router", "receiver")]
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for host, device, here, there in ((sender, "lan", "192.0.2.1", "192.0.2.126"), (receiver, "line", RECEIVER, "192.0.2.254")):
            run("ip", "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", device, "netns", router)
            for name, interface, address in ((host, "eth0", here), (router, device, there)):
                run("ip", "-n", name, "addr", "add", f"{address}/25", "dev", interface)
                run("ip", "-n", name, "link", "set", interface, "up")
            run("ip", "-n", host, "route", "add", "default", "via", there)
        run("ip", "netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        run("ip", "netns", "exec", router, "tc", "qdisc", "add", "dev", "line", "root", "tbf", "rate", "20mbit", "burst", "5kb", "limit", "250kb")
        yield sender, receiver
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextlib.contextmanager
def program(namespace: str, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A program in a namespace, which is ended at the end."""
    process = subprocess.Popen(["ip", "netns", "exec", namespace, *map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


# The rows of a case in a run: the name of a program, and its values in the order of `COLUMNS`. A stream has no delays.
Rows = dict[str, list[float | None]]


def case(name: str, manager: str, seconds: float, sender: str, receiver: str) -> Rows:
    """Runs a case. Returns what the receiver has printed of the programs."""
    with program(receiver, sys.executable, EXAMPLE, "receive", "0.0.0.0", str(PORT)) as receives:
        assert receives.stdout is not None
        for _ in ("port", "header"):
            receives.stdout.readline()
        with program(sender, sys.executable, EXAMPLE, "send", name, RECEIVER, str(PORT), str(seconds), manager) as sends:
            if sends.wait() != 0:
                sys.exit(f"the programs of {name} failed")
        rows: Rows = {}
        for line in sorted(receives.stdout):
            program_name, *values = line.rsplit(maxsplit=len(COLUMNS))
            rows[program_name] = [None if value == "-" else float(value) for value in values]
        return rows


def table(runs: list[Rows]) -> str:
    """Means of the runs of a case, with 95 % confidence intervals where there are several runs."""
    lines = [f"{'program':12}" + "".join(f"{column:>18}" for column in COLUMNS)]
    for name in sorted({name for rows in runs for name in rows}):
        cells = []
        for column in range(len(COLUMNS)):
            values = [value for rows in runs if name in rows and (value := rows[name][column]) is not None]
            cells.append("-" if not values else f"{(e := estimate(values)).mean:.2f}" + (f" ± {e.half:.2f}" if e.n > 1 else ""))
        present = sum(name in rows for rows in runs)
        missing = "" if present == len(runs) else f"   in {present} of {len(runs)} runs"
        lines.append(f"{name:12}" + "".join(f"{cell:>18}" for cell in cells) + missing)
    return "\n".join(lines)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cutlined", type=Path, required=True, help="the cutlined to use")
    arguments.add_argument("--seconds", type=float, default=20, help="length of each run")
    arguments.add_argument("--runs", type=int, default=5, help="runs of each case")
    options = arguments.parse_args()
    if options.runs < 1:
        arguments.error("--runs: at least 1")
    if os.geteuid() != 0:
        arguments.error("network namespaces need root")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sweep()
    with tempfile.TemporaryDirectory() as folder, hosts() as (sender, receiver):
        file = Path(folder) / "cutlined.toml"
        file.write_text(MANAGER.format(folder=folder))
        with program(sender, options.cutlined, "--config", file):
            socket = Path(folder) / "manager.sock"
            end = time.monotonic() + 60
            while not socket.exists():
                if time.monotonic() > end:
                    sys.exit("cutlined has no socket of a manager after a minute")
                time.sleep(0.05)
            measured: dict[tuple[str, str], list[Rows]] = {}
            for number in range(1, options.runs + 1):
                for name in CASES:
                    for title, manager in (("without shares", "unmanaged"), ("with shares", str(socket))):
                        print(f"run {number} of {options.runs}: {name}, {title}", file=sys.stderr, flush=True)
                        measured.setdefault((name, title), []).append(case(name, manager, options.seconds, sender, receiver))
    for (name, title), runs in measured.items():
        print(f"{name}, {title}\n{table(runs)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
