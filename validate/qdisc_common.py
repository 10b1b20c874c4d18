"""Common parts of the programs that run Cutline's queueing disciplines in the virtual machine: its files, and the account of packets."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import bpf_build

PROGRAMS = {
    "strip": "binutils", "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "gcc": "gcc", "apt-get": "apt",
}  # fmt: skip
"""Needed programs, each with Debian's package."""


class NotRun(Exception):
    """Reason why the machine cannot run here."""


class Fault(Exception):
    """Reason why the machine could not be built."""


def require(command: Path) -> None:
    """Raises an exception unless the command and the needed programs are there."""
    for program, package in PROGRAMS.items():
        if not shutil.which(program):
            raise NotRun(f"`{program}` is missing (Debian's package {package})")
    for program in (command, command.with_name("cutline-qdisc")):
        if not program.is_file():
            raise Fault(f"{program} is missing: build it with `cargo build -p cutline-cli`, or name the command with --cutline")


@contextlib.contextmanager
def building() -> Iterator[None]:
    """Turns the errors of a part that downloads and compiles into `NotRun` or `Fault`."""
    try:
        yield
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        if bpf_build.is_download(error):
            raise NotRun(f"the packages cannot be downloaded: {bpf_build.last_line(error)}") from error
        raise Fault(f"the programs cannot be built: {bpf_build.last_line(error)}") from error
    except RuntimeError as error:
        raise NotRun(str(error)) from error


def installed(work: Path, command: Path, objects: list[Path]) -> dict[str, Path]:
    """The command where it is installed, with the objects in their place and its libraries, by their paths in the machine."""
    files = {f"usr/lib/cutline/bpf/{path.name}": path for path in objects}
    for program, place in ((command, "usr/bin"), (command.with_name("cutline-qdisc"), "usr/lib/cutline")):
        stripped = work / program.name
        subprocess.run(["strip", "-o", stripped, program], check=True)
        needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        files |= {word.lstrip("/"): Path(word).resolve() for word in needed.split() if word.startswith("/")}
        files[f"{place}/{program.name}"] = stripped
    return files


def unaccounted(shown: dict) -> str:
    """The fault in the account of a queue of `cutline qdisc show --json`; empty if every packet is in it.

    Received = sent + dropped + queued, and the packets of all hints, and of all waits, are those that were sent.
    """
    found = shown["statistics"]
    dropped = sum(counted["packets"] for counted in found["dropped"].values())
    parts = found["sent"]["packets"] + dropped + found["queued_packets"]
    by_hint = sum(hint["departed"]["packets"] for hint in found["hints"])
    by_wait = sum(found["waits_us"]["counts"])
    if (found["received"]["packets"], by_hint, by_wait) == (parts, found["sent"]["packets"], found["sent"]["packets"]):
        return ""
    return (
        f"{found['received']['packets']} received, {found['sent']['packets']} sent, {dropped} dropped, {found['queued_packets']} queued, "
        f"{by_hint} by hint, {by_wait} by wait"
    )
