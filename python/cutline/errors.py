"""Exceptions of Cutline. Each names the fault and the allowed values; all are an `Error`, except an interruption.

    Error
        ArgumentError          an argument of a call (also a ValueError)
        OptionError            an option of a QoS socket (also a ValueError)
        ScenarioError          a scenario (also a ValueError)
        RunError               runs that failed; the others are in `results` (also a RuntimeError)
        StoreError             stored results that cannot be read or written (also an OSError)
            NoResults          a folder without results (also a FileNotFoundError)
            ResultsExist       results that would be lost (also a FileExistsError)
            ResultsLocked      another process stores results in the folder
            ResultsDamaged     files that differ from the stored ones
        NothingFound           results without the requested data (also a LookupError)
    ExtensionError         a method of an extension that returned a value that is not allowed (also a ValueError)
    ConformanceError       an extension that does not pass a check (also an AssertionError)
    LaboratoryError        a laboratory that cannot be used (also a RuntimeError)
    WorkerError            a worker of a cluster that cannot run a sweep (also a RuntimeError)
    ClusterLost            a cluster that no longer answers (also a ConnectionError)
    MissingLibrary         a library that is not installed (also an ImportError)
        Refused, NoPeer, Lost  the ends of a connection (also a ConnectionError)
    Interrupted                Ctrl-C during runs (a KeyboardInterrupt); the finished ones are in `results`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Results

__all__ = [
    "ArgumentError", "ClusterLost", "ConformanceError", "Error", "ExtensionError", "Interrupted", "LaboratoryError", "Lost", "MissingLibrary",
    "NoPeer", "NoResults", "NothingFound", "OptionError", "Problem", "Refused", "ResultsDamaged", "ResultsExist", "ResultsLocked", "RunError",
    "ScenarioError", "StoreError", "WorkerError",
]


class Error(Exception):
    """An error of Cutline."""


class ArgumentError(Error, ValueError):
    """An argument that is not allowed; the text has the allowed values."""

    parameter: str | None = None
    """Name of the parameter."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


@dataclass(frozen=True)
class Problem:
    """A problem of a scenario."""

    source: str
    """The file, or the setting as `--set` would have it."""
    line: int | None
    """The line in the file, from 1; None for a setting and for a key that the whole file lacks."""
    column: int | None
    """The column, characters from 1."""
    key: str | None
    """The path of the key, such as dumbbell.rate; None if the text is not TOML."""
    message: str
    """The error and the allowed values."""


class ScenarioError(Error, ValueError):
    """A scenario that cannot be run. The text is that of `cutline check`, with every problem."""

    problems: tuple[Problem, ...] = ()
    """The problems, in the order of the file; none if the simulator refuses an allowed scenario."""

    def __init__(self, message: str, problems: Iterable[tuple[str, int | None, int | None, str | None, str]] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(Problem(*parts) for parts in problems)


class RunError(Error, RuntimeError):
    """Runs that failed, with the first reasons."""

    results: Results | None = None
    """The results of the runs that finished."""

    def __init__(self, message: str, results: Results | None = None) -> None:
        super().__init__(message)
        self.results = results


class StoreError(Error, OSError):
    """Results that cannot be read or written."""


class NoResults(StoreError, FileNotFoundError):
    """A folder without results."""


class ResultsExist(StoreError, FileExistsError):
    """Results that would be lost."""


class ResultsLocked(StoreError):
    """A folder in which another process stores results."""


class ResultsDamaged(StoreError):
    """Files that differ from the stored ones."""


class NothingFound(Error, LookupError):
    """Results without the requested data."""


class ExtensionError(Error, ValueError):
    """A method of an extension that returned a value that is not allowed; the text has the allowed ones."""


class ConformanceError(Error, AssertionError):
    """An extension that does not pass a check of the conformance suite."""


class LaboratoryError(Error, RuntimeError):
    """A laboratory that cannot be used, for example without root."""


class WorkerError(Error, RuntimeError):
    """A worker of a cluster that cannot run a sweep, such as one with another version of Cutline."""


class ClusterLost(Error, ConnectionError):
    """A cluster that no longer answers. The parts of the sweep that have arrived are stored."""


class MissingLibrary(Error, ImportError):
    """A library that is not installed; the text says how to install it."""


class Interrupted(KeyboardInterrupt):
    """Runs that were interrupted."""

    results: Results | None = None
    """The results of the runs that finished; None if there is none."""

    def __init__(self, message: str, results: Results | None = None) -> None:
        super().__init__(message)
        self.results = results


class OptionError(Error, ValueError):
    """An option of a QoS socket that is not allowed; the text has the allowed values."""


class Refused(Error, ConnectionRefusedError):
    """The ends do not agree on a specification; or, with if-refused = fail, the network has not reserved it."""


class NoPeer(Error, ConnectionRefusedError):
    """The peer is no QoS socket, or has another key."""


class Lost(Error, ConnectionAbortedError):
    """The connection was lost and is being restored. This call had no effect; the next call uses the new connection."""
