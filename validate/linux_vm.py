"""A virtual machine with Debian's newest kernel in virtual time: its image, and its measurements.

QEMU emulates the processor and counts instructions as nanoseconds, so that the results do not depend on the host's speed. The
packages come from the Debian mirror that the host's apt is configured for, from the suite `trixie-backports`.
"""

import json
import lzma
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = ("trixie", "trixie-backports")
MODULES = ("sch_htb", "sch_codel", "sch_pie", "sch_netem", "sch_fq_codel", "sch_dualpi2", "veth", "sch_fq_pie", "sch_cake", "sch_red")
"""In the order of loading. Those that the kernel has built in are not in the package."""
FIRST_WITH_EBPF = [6, 17]
"""The first version of Debian's kernel with queueing disciplines in eBPF. Its Linux 6.16 has been built without `CONFIG_NET_SCH_BPF`."""
LINES_OF_APT = """Dir::State "{0}/apt";
Dir::State::status "{0}/apt/status";
Dir::Cache "{0}/apt/cache";
Dir::Etc::sourcelist "{0}/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Acquire::Languages "none";
"""


def numbers(version: str) -> list[int]:
    """The numbers of a version of the kernel: 7, 2 and 12 of `7.2.12+deb13-cloud-amd64`."""
    return [int(number) for number in re.findall(r"\d+", version.split("+")[0])]


def kernel(folder: Path, which: str = "newest") -> Path:
    """The newest cloud kernel of the suites, or the `oldest` with queueing disciplines in eBPF, unpacked. A folder with a kernel keeps it."""
    found = list(folder.glob("root/usr/lib/modules/*/vmlinuz"))
    if found:
        return found[0]
    environment = os.environ | {"APT_CONFIG": str(apt(folder))}
    run = {"env": environment, "check": True, "capture_output": True, "text": True, "timeout": 600}
    subprocess.run(["apt-get", "update"], **run)
    names = subprocess.run(["apt-cache", "pkgnames", "linux-"], **run).stdout.split()
    version = chosen(names, which)
    if not version:
        raise RuntimeError(f"the mirror has no {which} cloud kernel in {' or '.join(SUITES)}")
    # Before Linux 6.19 a kernel and its modules are in one package.
    parts = [f"linux-{part}-{version}" for part in ("binary", "modules")]
    packages = folder / "packages"
    packages.mkdir(exist_ok=True)
    subprocess.run(["apt-get", "download", *(parts if parts[0] in names else [f"linux-image-{version}"])], cwd=packages, **run)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    in_boot = folder / f"root/boot/vmlinuz-{version}"
    if in_boot.exists():
        in_boot.rename(folder / f"root/usr/lib/modules/{version}/vmlinuz")
    return kernel(folder, which)


def chosen(names: list[str], which: str) -> str:
    """The version of the newest cloud kernel among packages, or of the oldest one with queueing disciplines in eBPF; empty if there is none."""
    packages = (re.fullmatch(r"linux-(?:binary|image)-(\d\S*-cloud-amd64)", name) for name in names)
    versions = sorted({package[1] for package in packages if package}, key=numbers)
    if which == "oldest":
        return next((version for version in versions if numbers(version) >= FIRST_WITH_EBPF), "")
    return versions[-1] if versions else ""


def apt(folder: Path) -> Path:
    """The configuration of an apt with lists and packages of its own."""
    about = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"]
    mirrors = subprocess.run(about, check=True, capture_output=True, text=True).stdout.split()
    if not mirrors:
        raise RuntimeError("apt of this host has no mirror of Debian")
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / "apt" / part).mkdir(parents=True, exist_ok=True)
    (folder / "apt/status").touch()
    key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    (folder / "apt/sources.list").write_text("".join(f"deb {key} {mirrors[0]} {suite} main\n" for suite in SUITES))
    file = folder / "apt/apt.conf"
    file.write_text(LINES_OF_APT.format(folder.resolve()))
    # apt runs in another folder.
    return file.resolve()


def image(folder: Path, plan: str, name: str, more: dict[str, Path]) -> Path:
    """The first file system: busybox, ip, tc, the modules, the load, more files by their paths in it, and the plan."""
    files = {"init": HERE / "linux/init.sh"} | programs(folder) | more
    contents = {name: (0o100755, file.read_bytes()) for name, file in files.items()} | modules(folder, MODULES)
    contents["plan"] = (0o100644, plan.encode())
    written = folder / f"{name}.cpio"
    written.write_bytes(archive(contents))
    return written


def programs(folder: Path) -> dict[str, Path]:
    """Programs of the first file system by their paths in it: busybox, ip, tc and the load."""
    load = folder / "load"
    # Images are made at the same time.
    written = folder / f"load-{threading.get_ident()}"
    subprocess.run(["gcc", "-O2", "-Wall", "-static", "-o", written, HERE / "linux/load.c", "-lm"], check=True)
    written.replace(load)
    files = {"load": load, "bin/busybox": Path(shutil.which("busybox"))}
    for tool in ("ip", "tc"):
        program = Path(shutil.which(tool) or f"/usr/sbin/{tool}").resolve()
        files[f"tools/{tool}"] = program
        needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        files |= {word.lstrip("/"): Path(word).resolve() for word in needed.split() if word.startswith("/")}
    return files


def modules(folder: Path, names: tuple[str, ...]) -> dict[str, tuple[int, bytes]]:
    """Modules of the first file system, numbered in the order of loading. Those that the kernel has built in are left out."""
    contents = {}
    for number, module in enumerate(names):
        for file in folder.glob(f"root/usr/lib/modules/*/kernel/**/{module}.ko.xz"):
            contents[f"modules/{number:02}-{module}.ko"] = (0o100644, lzma.decompress(file.read_bytes()))
    return contents


def has_module(folder: Path, name: str) -> bool:
    """True if the kernel has this module, or has it built in."""
    place = kernel(folder).parent
    built_in = place / "modules.builtin"
    is_built_in = built_in.exists() and f"/{name}.ko" in built_in.read_text()
    return is_built_in or any(place.glob(f"kernel/**/{name}.ko.xz"))


def archive(contents: dict[str, tuple[int, bytes]]) -> bytes:
    """A cpio archive in the format newc, with the folders that the files are in and a few more."""
    folders = {str(parent) for name in contents for parent in Path(name).parents if str(parent) != "."}
    folders |= {"proc", "sys", "dev", "run", "tmp"}
    entries = [(name, 0o40755, b"") for name in sorted(folders)]
    entries += [(name, mode, data) for name, (mode, data) in contents.items()]
    parts = []
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        text = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(text), 0)
        parts += [padded(b"070701" + "".join(f"{field:08X}" for field in fields).encode() + text), padded(data)]
    return b"".join(parts)


def padded(data: bytes) -> bytes:
    """Up to a multiple of four bytes."""
    return data + b"\0" * (-len(data) % 4)


def boot(folder: Path, files: Path, timeout: float, processors: int = 1, first: str = "init") -> subprocess.CompletedProcess:
    """Runs the machine with this first file system until it turns itself off. Its output is also in a file of its name, from the first line on.

    QEMU runs the instructions of several processors in turns, in one thread, so time is as virtual as that of one processor. `first` is the first process.
    """
    kernel_words = ["console=ttyS0", "panic=-1", "quiet", "mitigations=off", "nokaslr", "no_timer_check"]
    if first != "init":
        kernel_words.append(f"rdinit=/{first}")
    if processors > 1:
        # The processors have one counter, which the kernel would not believe of this model.
        kernel_words.append("tsc=reliable")
    command = [
        "qemu-system-x86_64", "-accel", "tcg,thread=single", "-smp", str(processors), "-icount", "shift=0,sleep=off", "-m", "1024",
        "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio", "-kernel", kernel(folder), "-initrd", files,
        "-append", " ".join(kernel_words),
    ]  # fmt: skip
    said = log_of(folder, files, first)
    with said.open("wb") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout, stdin=subprocess.DEVNULL)
    done.stdout = said.read_text(errors="replace")
    return done


def log_of(folder: Path, files: Path, first: str = "init") -> Path:
    """The file of what a machine prints."""
    return folder / (f"{files.stem}.log" if first == "init" else f"{files.stem}-{first}.log")


def measure(folder: Path, name: str, plan: list[str], timeout: float, more: dict[str, Path]) -> tuple[str, dict[str, dict]]:
    """Runs the lines of a plan, with more files in the machine; the kernel's version, and the output by the name of each line."""
    done = boot(folder, image(folder, "".join(f"{line}\n" for line in plan), name, more), timeout)
    version, runs, run = "", {}, {}
    for line in done.stdout.splitlines():
        word, _, rest = line.strip().rpartition("KERNEL ")[2].partition(" ") if "KERNEL " in line else line.partition(" ")
        if "KERNEL " in line:
            version = word
        elif word == "RUN":
            run = runs[rest.strip()] = {}
        elif word == "QUEUE":
            when, _, document = rest.partition(" ")
            run[when] = json.loads(document)[-1]
        elif word == "RESULT":
            run |= json.loads(rest)
        elif word == "LIST":
            run["list"] = json.loads(rest)
        elif word == "FAILED":
            raise RuntimeError(f"{name}: {line}")
    incomplete = [line for line in plan if "classes" not in runs.get(line.split("|")[0], {})]
    if incomplete:
        raise RuntimeError(f"{name}: the machine did not run {incomplete}:\n{done.stdout[-2000:]}\n{done.stderr[-500:]}")
    return version, runs
