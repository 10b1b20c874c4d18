#!/usr/bin/env python3
"""Builds the queueing disciplines of `bpf/` into object files for the kernel, and the program that tests load them with.

    python3 validate/bpf_build.py --work target/linux-vm --out target/bpf

The compiler, its linker, libbpf and bpftool come from Debian's mirror, as the kernel of `linux_vm.py` does, and are unpacked below the
folder of work. Nothing is installed: the programs run with the loader and the libraries that come with them, so the host may be another
Debian. The kernel's types come from its package of headers. An object works in other kernels as well: fields of the kernel's
structures are found when it is loaded.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import linux_vm

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("clang-19", "llvm-19", "libbpf-dev", "bpftool/trixie-backports", "libc6")
OBJECTS = ("tsq", "sieve")
LIBRARIES = ("libbpf.so.1", "libelf.so.1", "libz.so.1", "libzstd.so.1", "libc.so.6", "ld-linux-x86-64.so.2")
"""Of the program that loads the objects, which is not linked to those of the host."""
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-missing-declarations", "-Wno-microsoft-anon-tag", "-Wno-unused-parameter")


class Tools:
    """Programs of another Debian, below a folder."""

    def __init__(self, work: Path) -> None:
        """Downloads and unpacks them unless they are there."""
        self.work = work.resolve()
        self.root = self.work / "tools"
        self.libraries = self.root / "usr/lib/x86_64-linux-gnu"
        self.version = linux_vm.kernel(work).parent.name
        if not (self.work / "tools.done").exists():
            self.fetch()
        self.headers = self.work / f"types-{self.version}"
        if not (self.headers / "vmlinux.h").exists():
            self.types()

    def fetch(self) -> None:
        """Downloads the packages, all that they need included."""
        archives = self.work / "archives"
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"APT_CONFIG": str(linux_vm.apt(self.work))}
        run = {"env": environment, "check": True, "capture_output": True, "text": True, "timeout": 600}
        subprocess.run(["apt-get", "update"], **run)
        options = ["-o", f"Dir::Cache::archives={archives}", "-o", "Debug::NoLocking=1"]
        subprocess.run(["apt-get", "install", "-y", "--download-only", "--no-install-recommends", *options, *PACKAGES], **run)
        subprocess.run(["apt-get", "download", f"linux-headers-{self.version}"], cwd=archives, **run)
        for package in archives.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, self.root], check=True)
            package.unlink()
        (self.work / "tools.done").touch()

    def types(self) -> None:
        """Writes the kernel's types as a header."""
        [image] = self.root.glob(f"usr/src/linux-headers-{self.version}/vmlinux")
        text = self.run("usr/sbin/bpftool", "btf", "dump", "file", image, "format", "c", stdout=subprocess.PIPE).stdout
        self.headers.mkdir(exist_ok=True)
        (self.headers / "vmlinux.h").write_bytes(text)

    def run(self, program: str, *arguments: str | Path, **options) -> subprocess.CompletedProcess:
        """Runs a program with its own loader and libraries."""
        loader = self.root / "usr/lib64/ld-linux-x86-64.so.2"
        path = f"{self.libraries}:{self.root}/usr/lib/llvm-19/lib"
        return subprocess.run([loader, "--library-path", path, self.root / program, *arguments], check=True, **options)

    def clang(self, *arguments: str | Path) -> None:
        """Compiles without the host's headers."""
        self.run("usr/lib/llvm-19/bin/clang", "-resource-dir", self.root / "usr/lib/llvm-19/lib/clang/19", *arguments)

    def compile_object(self, source: Path, written: Path) -> None:
        """Compiles a program for the kernel. Its types stay in it, the compiler's descriptions for debuggers do not."""
        target = ["-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-fms-extensions"]
        headers = ["-isystem", self.headers, "-isystem", self.root / "usr/include"]
        self.clang("-O2", "-g", *target, *WARNINGS, *headers, "-c", source, "-o", written)
        self.run("usr/lib/llvm-19/bin/llvm-strip", "-g", written)

    def compile_program(self, source: Path, written: Path) -> None:
        """Compiles and links a program against libbpf, to run with the libraries of `peer` in the virtual machine."""
        part = written.with_suffix(".o")
        self.clang("-O2", "-Wall", "-Wextra", "-Werror", "--sysroot", self.root, "-c", source, "-o", part)
        compiler = self.root / "usr/lib/gcc/x86_64-linux-gnu/14"
        begin = [self.libraries / "crt1.o", self.libraries / "crti.o", compiler / "crtbegin.o", part]
        c = [self.libraries / name for name in ("libc.so.6", "libc_nonshared.a", "ld-linux-x86-64.so.2")]
        end = [compiler / "crtend.o", self.libraries / "crtn.o"]
        libraries = [f"-L{self.libraries}", f"-L{compiler}", "-lbpf", "-lelf", "-lz", "-lzstd", "-lgcc", *c]
        place = ["-dynamic-linker", f"/peer/{LIBRARIES[-1]}", "-rpath", "/peer", "-o", written]
        self.run("usr/bin/x86_64-linux-gnu-ld.bfd", *place, *begin, *libraries, *end)


def build(work: Path, out: Path) -> tuple[Tools, list[Path]]:
    """Builds all objects, and returns the tools and the objects."""
    work.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    tools = Tools(work)
    objects = []
    for name in OBJECTS:
        objects.append(out / f"{name}.bpf.o")
        tools.compile_object(ROOT / f"bpf/src/{name}.bpf.c", objects[-1])
    return tools, objects


def is_download(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> bool:
    """True if a failed command was to fetch packages."""
    return str(error.cmd[0]).startswith("apt-")


def last_line(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    """The last line that a command has printed before it failed; the command and its end, where its output was not kept."""
    kept = error.stderr or ""
    lines = (kept.decode(errors="replace") if isinstance(kept, bytes) else kept).strip().splitlines()
    return lines[-1] if lines else str(error)


def main() -> int:
    """Builds, and prints the paths of the objects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("target/linux-vm"), help="folder of the tools (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("target/bpf"), help="folder of the objects (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        _, objects = build(arguments.work, arguments.out)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        doing = "the packages cannot be downloaded" if is_download(error) else "the objects cannot be built"
        print(f"bpf: {doing}: {last_line(error)}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"bpf: {error}", file=sys.stderr)
        return 1
    for path in objects:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
