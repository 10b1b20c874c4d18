#!/usr/bin/env python3
"""Builds all tests and runs them in several rows at the same time; `make test` calls it.

A row has the programs of some packages, which run one after another, as under `cargo test`: packages whose tests would
disturb each other belong to one row, such as those that start laboratories, each of which removes what killed ones have
left. Tests that make network namespaces mostly wait for packets and timers, so the programs of all other packages, the
examples of the documentation and the tests for Python run beside them: one row more takes them from the front of a
queue, and so does each row that has done its own.

Each line of output begins with the name of what printed it. A failed program does not stop the others: the failed
tests are listed at the end, and the exit code is 1. A program that does not end is killed, and has failed.
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# The programs of the queue with the most processor time, the longest first. The others follow by their names: the last ones to begin should be short, so
# that no core is idle at the end.
LONGEST = ["reproduce/all", "bpf-parity/all", "rsvp/all", "scenario/all", "fuzz/all", "manager/all", "sim/all", "testbed/all"]

# Time after which a program is killed, seconds. The longest one takes five minutes, and a quarter of an hour on a busy machine.
LONGEST_RUN = 1800

FAILED_TEST = re.compile(r"^(?:test (\S+)(?: - .*)? \.\.\. FAILED|FAILED (\S+))")


@dataclass
class Step:
    """A test program or a command that runs tests."""

    name: str
    command: list[str]
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Failure:
    """A step that failed, the tests in it that are known to have failed, and its exit code."""

    name: str
    tests: list[str]
    code: int


class Rows:
    """Rows of steps, which run beside each other, and a queue of steps for rows that have nothing left."""

    def __init__(self, queue: list[Step]) -> None:
        self.queue = deque(queue)
        self.failures: list[Failure] = []
        self.processes: set[subprocess.Popen[str]] = set()
        # Of all steps that have ended and the processes for which they have waited, seconds.
        self.cpu = 0.0
        self.lock = threading.Lock()
        self.stopped = False

    def run(self, rows: list[list[Step]]) -> None:
        """Runs each row's steps in order, and the rows and the queue at the same time. An error of a row is an error of
        this call."""
        with ThreadPoolExecutor(len(rows)) as threads:
            running = [threads.submit(self._row, row) for row in rows]
            try:
                for row in running:
                    row.result()
            except BaseException:
                with self.lock:
                    self.stopped = True
                    for process in self.processes:
                        end(process, signal.SIGTERM)
                raise

    def _row(self, steps: list[Step]) -> None:
        for step in itertools.chain(steps, self._queued()):
            process = self._start(step)
            if process is None:
                return
            began = time.monotonic()
            tests = []
            assert process.stdout is not None
            limit = threading.Timer(LONGEST_RUN, self._kill, (step, process))
            limit.daemon = True
            limit.start()
            for line in process.stdout:
                print(f"{step.name} | {line}", end="" if line.endswith("\n") else "\n", flush=True)
                if found := FAILED_TEST.match(line):
                    tests.append(found[1] or found[2])
            code, cpu = ended(process)
            limit.cancel()
            print(f"{step.name} | {time.monotonic() - began:.1f} s, {cpu:.1f} s of CPU", flush=True)
            with self.lock:
                self.cpu += cpu
                self.processes.discard(process)
                if code != 0:
                    self.failures.append(Failure(step.name, tests, code))

    def _kill(self, step: Step, process: "subprocess.Popen[str]") -> None:
        """Ends a step that does not end by itself. Of its tests, those that run for long have been named in its output."""
        print(f"{step.name} | has not ended after {LONGEST_RUN} s, and is killed", flush=True)
        end(process, signal.SIGKILL)

    def _queued(self) -> Iterator[Step]:
        """Takes steps from the queue until it is empty."""
        while True:
            # Another row may have taken the last one.
            try:
                yield self.queue.popleft()
            except IndexError:
                return

    def _start(self, step: Step) -> "subprocess.Popen[str] | None":
        with self.lock:
            if self.stopped:
                return None
            process = subprocess.Popen(
                step.command,
                cwd=step.directory,
                env=os.environ | step.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=0,
            )
            self.processes.add(process)
            return process


def end(process: "subprocess.Popen[str]", by: signal.Signals) -> None:
    """Ends a process by a signal, with the programs that it has started: they hold its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, by)


def ended(process: "subprocess.Popen[str]") -> tuple[int, float]:
    """Waits for a process. Returns its exit code, and the CPU time in seconds of it and of those for which it has waited."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def built(cargo: str) -> list[tuple[str, Step]]:
    """Builds the workspace's test programs and returns each with the name of its package.

    The same call builds all else that tests use: libraries, such as that of the package for Python, programs and examples. A call of its own would have few
    crates to build at a time. The features are those of `cargo test`, so nothing is built twice.
    """
    targets = ["--lib", "--bins", "--tests", "--examples"]
    command = [cargo, "build", "--workspace", "--locked", *targets, "--message-format=json-render-diagnostics"]
    build = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if build.returncode != 0:
        sys.exit(build.returncode)
    # The tests of a crate of macros need the standard library as a shared one.
    libraries = subprocess.run(["rustc", "--print", "target-libdir"], stdout=subprocess.PIPE, text=True, check=True)
    paths = [libraries.stdout.strip(), os.environ.get("LD_LIBRARY_PATH", "")]
    programs = []
    for line in build.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
            continue
        manifest = Path(message["manifest_path"])
        package = package_name(manifest)
        target = message["target"]
        kind = "" if target["kind"] == ["test"] else "unit:"
        # What `cargo test` sets for a program that it runs.
        environment = {
            "CARGO": cargo,
            "CARGO_MANIFEST_DIR": str(manifest.parent),
            "CARGO_PKG_NAME": package,
            "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
        }
        name = f"{package.removeprefix('cutline-')}/{kind}{target['name']}"
        programs.append((package, Step(name, [message["executable"]], manifest.parent, environment)))
    return sorted(programs, key=lambda program: program[1].name)


def package_name(manifest: Path) -> str:
    """Returns the name of the package that a Cargo.toml describes."""
    with manifest.open("rb") as file:
        return tomllib.load(file)["package"]["name"]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--row",
        action="append",
        default=[],
        metavar="PACKAGES",
        help="packages whose programs run one after another, without cutline-",
    )
    arguments.add_argument("--cargo", default="cargo", help="the cargo to use")
    arguments.add_argument("--then", action="append", default=[], metavar="COMMAND", help="a command that also runs tests")
    options = arguments.parse_args()
    root = Path(__file__).resolve().parent.parent
    os.chdir(root)

    programs = built(options.cargo)
    known = {package for package, _ in programs}
    packages = [[f"cutline-{name}" for name in row.split()] for row in options.row]
    in_rows = list(itertools.chain(*packages))
    if unknown := [name for name in in_rows if name not in known]:
        arguments.error(f"no tests in {', '.join(unknown)}")

    rows = [[step for package, step in programs if package in row] for row in packages]
    # The commands first: the longest are among them.
    queue = [Step(command.split()[-1], command.split(), root) for command in options.then]
    queue.append(Step("doc", [options.cargo, "test", "--workspace", "--locked", "--doc", "--no-fail-fast"], root))
    others = [step for package, step in programs if package not in in_rows]
    if unknown := set(LONGEST) - {step.name for step in others}:
        sys.exit(f"LONGEST in {__file__}: no tests in the queue are called {', '.join(sorted(unknown))}")
    # Those that are not in the list keep their order.
    queue += sorted(others, key=lambda step: LONGEST.index(step.name) if step.name in LONGEST else len(LONGEST))
    steps = len(queue) + sum(map(len, rows))

    # SIGTERM ends the programs as well, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runner = Rows(queue)
    began = time.monotonic()
    try:
        runner.run([*rows, []])
    except KeyboardInterrupt:
        return 130
    print(f"\n{steps} programs in {time.monotonic() - began:.0f} s, {runner.cpu:.0f} s of CPU, {len(runner.failures)} failed")
    for failure in runner.failures:
        print(f"failed: {failure.name}, exit code {failure.code}: {', '.join(failure.tests) or 'see its output'}")
    return 1 if runner.failures else 0


if __name__ == "__main__":
    sys.exit(main())
