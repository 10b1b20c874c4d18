"""Cutline for Python.

`cutline.socket` has sockets with quality of service, `cutline.sim` the simulator:

    import cutline

    results = cutline.run("examples/dumbbell.toml", seeds=10)
    print(results.summary(groups=["audio"], measures=["q", "queuing_p99_ms"]))

`cutline.open` opens stored results, and `cutline.errors` has the exceptions.
"""

from . import errors, results, sim, socket
from ._native import __version__
from .errors import (
    ArgumentError, Error, Interrupted, Lost, MissingLibrary, NoPeer, NoResults, NothingFound, OptionError, Problem, Refused,
    ResultsDamaged, ResultsExist, ResultsLocked, RunError, ScenarioError, StoreError,
)
from .results import Results, Table, open
from .sim import CutlineWarning, Scenario, run

__all__ = [
    "ArgumentError", "CutlineWarning", "Error", "Interrupted", "Lost", "MissingLibrary", "NoPeer", "NoResults", "NothingFound",
    "OptionError", "Problem", "Refused", "Results", "ResultsDamaged", "ResultsExist", "ResultsLocked", "RunError", "Scenario",
    "ScenarioError", "StoreError", "Table", "__version__", "errors", "open", "results", "run", "sim", "socket",
]
