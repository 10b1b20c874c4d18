"""Builds the programs that run ns-3."""

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = ("applications", "point-to-point", "traffic-control", "internet", "network", "core", "stats")


def build(name: str, folder: Path) -> Path:
    """Builds the program of this name from `ns3/` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    libraries = [f"-lns3-{library}" for library in LIBRARIES]
    source = str(HERE / f"ns3/{name}.cc")
    subprocess.run(["g++", "-O2", "-std=c++17", "-o", str(program), source, *libraries], check=True)
    return program
