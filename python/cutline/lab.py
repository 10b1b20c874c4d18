"""The laboratory: scenarios with real packets, the kernel's TCP and real programs, in network namespaces. It needs root.

    results = cutline.lab.run("examples/dumbbell.toml", seeds=2)
    print(cutline.open("results/dumbbell").compare(results))

Scenarios, results and their tables are those of the simulator (docs/guide/lab.md), and the code is that of `cutline lab`. A run takes the
duration of its scenario.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import _native
from .errors import ArgumentError
from .results import Results
from .sim import Plan, Scenario, _execute, _path, _plan

__all__ = ["check", "clean", "refusal", "run"]


def run(
    scenario: Scenario | str | os.PathLike[str],
    seeds: int | range | None = None,
    jobs: int = 1,
    progress: bool = True,
    *,
    results: str | os.PathLike[str] | None = "results/lab",
    resume: bool = False,
    force: bool = False,
    tcp: str = "stock",
    departure_bound: str = "1 ms",
    programs: Mapping[str, str] | None = None,
) -> Results:
    """Runs every point of a scenario's sweep with every seed with real packets, as `cutline lab run` does.

    scenario, seeds, progress: as in `cutline.run`.
    jobs: the number of runs at a time.
    results: the folder of all results of laboratories; None keeps them in memory.
    resume, force: whether to keep stored measurements and add the missing ones, or to measure again. Without either, stored results are an
        error: measurements are not repeated.
    tcp: "stock" for the defaults of the kernel, "classic" for a TCP that is closer to that of the papers.
    departure_bound: upper bound of the 99th percentile of the departure error. Above it the timing of a run is not valid; `results.timing`
        has the reason.
    programs: commands in the place of flows over UDP or TFRC, by the name of the flow.

    Ctrl-C stops the runs. Nothing is left in the network, also after an exception.
    """
    laboratory = _native.Laboratory(_text("tcp", tcp), _text("departure_bound", departure_bound), _programs(programs))
    return _execute(scenario, seeds, jobs, progress, results, resume, force, laboratory)


def check(scenario: Scenario | str | os.PathLike[str], *, programs: Mapping[str, str] | None = None) -> Plan:
    """Returns the plan of the runs, and refuses the same scenarios as `cutline lab check`. It needs no root."""
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_file(_path("scenario", scenario))
    return _plan(*_native.Laboratory("stock", "1 ms", _programs(programs)).check(scenario._file))


def refusal() -> str | None:
    """Returns the reason why this process may not use the laboratory; None if it may."""
    return _native.laboratory_refusal()


def clean() -> list[str]:
    """Removes the namespaces of laboratories that were killed, and returns their names. Every run does that first, too."""
    return _native.clean_laboratory()


def _text(parameter: str, found: object) -> str:
    if not isinstance(found, str):
        raise ArgumentError(f"{parameter}: {found!r} is not allowed: expected a str", parameter)
    return found


def _programs(programs: Mapping[str, str] | None) -> list[tuple[str, str]]:
    found = {} if programs is None else programs
    if not isinstance(found, Mapping) or not all(isinstance(one, str) and one.strip() for pair in found.items() for one in pair):
        raise ArgumentError(f"programs: {programs!r} is not allowed: expected a mapping of flows and commands", "programs")
    return list(found.items())
