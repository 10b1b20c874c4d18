"""Build backend of the package: maturin's, after the `cutline` command has been built into the wheel's data.

CUTLINE_PROFILE is the Cargo profile of both, `release` unless it says otherwise. CUTLINE_COMMAND is a command that is built already.

A panic becomes an exception of Python, so the module unwinds: for it, `release` is the profile `library`, which differs in that alone.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import get_requires_for_build_editable, get_requires_for_build_wheel

__all__ = [
    "build_editable", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).parents[2]
DATA = ROOT / "target/wheel-data/scripts"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata, for which maturin wants the folder of the data."""
    DATA.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the command and the module into a wheel."""
    profile = os.environ.get("CUTLINE_PROFILE", "release")
    _build(profile)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the command and the module for an editable installation, without optimisation."""
    profile = os.environ.get("CUTLINE_PROFILE", "dev")
    _build(profile)
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def _build(profile):
    """Builds the command, and chooses the module's profile."""
    module = "library" if profile == "release" else profile
    if module not in ("library", "dev"):
        # Both, so that they share their common parts.
        os.environ[f"CARGO_PROFILE_{module.upper().replace('-', '_')}_PANIC"] = "unwind"
    _command(profile)
    os.environ.setdefault("MATURIN_PEP517_ARGS", f"--locked --profile {module}")


def _command(profile):
    """Puts the command where maturin takes the wheel's data from."""
    built = os.environ.get("CUTLINE_COMMAND")
    if not built:
        subprocess.run(["cargo", "build", "--locked", "--profile", profile, "--package", "cutline-cli", "--bin", "cutline"], cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        built = target / ("debug" if profile == "dev" else profile) / "cutline"
    DATA.mkdir(parents=True, exist_ok=True)
    shutil.copy2(built, DATA / "cutline")
    # A command with symbols is five times as large.
    subprocess.run(["strip", os.fspath(DATA / "cutline")], check=False)
