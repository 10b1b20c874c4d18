"""Cutline for Python.

`cutline.socket` has sockets with quality of service, `cutline.sim` the simulator:

    import cutline

    results = cutline.run("examples/dumbbell.toml", seeds=10)
    print(results.summary(groups=["audio"], measures=["q", "queuing_p99_ms"]))

`cutline.open` opens stored results. `cutline.aqm` has queues that are stepped by hand, `cutline.quality` the quality functions,
`cutline.translate` the consequences of an application's needs, `cutline.extend` queue laws, sources of traffic and congestion controls
in Python, and `cutline.errors` the exceptions.
"""

from . import aqm, errors, extend, quality, results, sim, socket
from ._native import __version__
from ._translation import Translation, translate
from .errors import (
    ArgumentError, ConformanceError, Error, ExtensionError, Interrupted, Lost, MissingLibrary, NoPeer, NoResults, NothingFound, OptionError,
    Problem, Refused, ResultsDamaged, ResultsExist, ResultsLocked, RunError, ScenarioError, StoreError,
)
from .results import Results, Table, open as open
from .sim import CutlineWarning, Scenario, run

__all__ = [
    "ArgumentError", "ConformanceError", "CutlineWarning", "Error", "ExtensionError", "Interrupted", "Lost", "MissingLibrary", "NoPeer", "NoResults", "NothingFound",
    "OptionError", "Problem", "Refused", "Results", "ResultsDamaged", "ResultsExist", "ResultsLocked", "RunError", "Scenario",
    "ScenarioError", "StoreError", "Table", "Translation", "__version__", "aqm", "errors", "extend", "quality", "results", "run", "sim",
    "socket", "translate",
]
