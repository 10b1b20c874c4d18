"""Cutline for Python.

`cutline.socket` has sockets with quality of service, `cutline.sim` the simulator:

    import cutline

    results = cutline.run("examples/dumbbell.toml", seeds=10)
    print(results.summary(groups=["audio"], measures=["q", "queuing_p99_ms"]))

`cutline.open` opens stored results, `cutline.plot` draws them, `cutline.sweep` runs sweeps over many machines, and `cutline.lab` has
real packets. `cutline.aqm` has queues that are stepped by hand, `cutline.tfrc` the ends of a flow, `cutline.quality` the quality functions, `cutline.translate` the consequences of an application's needs,
`cutline.extend` queue laws, sources of traffic and congestion controls in Python, and `cutline.errors` the exceptions.
"""

from . import aqm, errors, extend, lab, plot, quality, results, sim, socket, tfrc
from ._native import __version__
from ._sweep import Sweep, open_sweep, sweep
from ._translation import Translation, translate
from .errors import (
    ArgumentError, ClusterLost, ConformanceError, Error, ExtensionError, Interrupted, LaboratoryError, Lost, MissingLibrary, NoPeer,
    NoResults, NothingFound, OptionError, Problem, Refused, ResultsDamaged, ResultsExist, ResultsLocked, RunError, ScenarioError, StoreError, WorkerError,
)
from .results import Results, Table, open as open
from .sim import CutlineWarning, Scenario, run

__all__ = [
    "ArgumentError", "ClusterLost", "ConformanceError", "CutlineWarning", "Error", "ExtensionError", "Interrupted",
    "LaboratoryError", "Lost", "MissingLibrary", "NoPeer", "NoResults", "NothingFound", "OptionError", "Problem", "Refused", "Results", "ResultsDamaged",
    "ResultsExist", "ResultsLocked", "RunError", "Scenario", "ScenarioError", "StoreError", "Sweep", "Table", "Translation",
    "WorkerError", "__version__", "aqm", "errors", "extend", "lab", "open_sweep", "plot", "quality", "results", "run", "sim", "socket",
    "sweep", "tfrc", "translate",
]
