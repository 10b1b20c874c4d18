"""The simulator: scenarios, and their runs on all cores.

    >>> import cutline
    >>> scenario = cutline.Scenario.from_file("examples/dumbbell.toml").with_({"duration": "30 s"})
    >>> hints = scenario.sweep({"flow.audio.hint": [1, 6, 16]})
    >>> [point.label for point in hints.check().points]
    ['flow.audio.hint=1', 'flow.audio.hint=6', 'flow.audio.hint=16']
    >>> results = cutline.run(hints, seeds=2)
    >>> means = results.summary(groups=["audio"], measures=["q"])
    >>> [row["n"] for row in means]
    [2, 2, 2]

A scenario is a file of `cutline run`, with its keys (docs/guide/scenario.md). Runs are those of the command: the same rows, byte for
byte, in the same folders.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _native, _toml, extend
from ._progress import Progress
from .errors import ArgumentError, Interrupted, RunError
from .results import Results

__all__ = ["CutlineWarning", "FlowGroup", "Grid", "Plan", "Point", "Scenario", "run"]

_SHOWN_REASONS = 5

Grid = (
    Mapping[str, Any] | Mapping[tuple[str, str], Any] | Mapping[tuple[str, str, str], Any] | Mapping[tuple[str, ...], Any]
    | Mapping[str | tuple[str, ...], Any]
)
"""Keys, or tuples of keys that vary together, and their values."""


class CutlineWarning(UserWarning):
    """Warning about a setting that is allowed but probably a mistake, or about damaged results that are computed again."""


@dataclass(frozen=True)
class Point:
    """A point of a sweep."""

    label: str
    """The label, as in the tables."""
    settings: Mapping[str, str]
    """The values of the swept keys at this point."""


@dataclass(frozen=True)
class Arrivals:
    """Transfers that arrive as a Poisson process."""

    per_second: float
    """The mean number of transfers each second."""
    load: float | None
    """The load of the busiest link of a host: payload over the link's rate; None if the rate of arrivals was given."""
    mean_bytes: float | None
    """The mean size of a transfer; None if it is infinite."""
    from_s: float
    """The time from which transfers arrive."""
    until_s: float
    """The time until which transfers arrive."""


@dataclass(frozen=True)
class HostPaths:
    """The shortest paths between different hosts."""

    least_links: int
    """The links between the nearest hosts."""
    most_links: int
    """The links between the most distant hosts."""
    most_paths: int
    """The largest number of shortest paths between two hosts."""


@dataclass(frozen=True)
class Engine:
    """The engine that simulates a network. Both engines have the same results."""

    name: str
    """`stages` or `event-loop`."""
    stages: int | None
    """The number of stages; None for the event loop."""
    lookahead_s: float | None
    """The least latency from one stage to another; None for the event loop."""
    window_s: float | None
    """The length of a window; None for the event loop."""
    reason: str | None
    """The reason why the network is simulated event by event; None for stages."""


@dataclass(frozen=True)
class FlowGroup:
    """A group of flows with the same parameters."""

    name: str
    count: int
    """The number of flows; of transfers that arrive, those in the run with the first seed."""
    arrivals: Arrivals | None
    """Transfers that arrive at random; None for a group with a fixed number of flows."""
    transport: str
    """The title of the transport."""
    quality_class: str
    """The quality class."""
    hint: int
    """The delay hint, 1 to 16; the initial one if the hint adapts."""
    adaptive: bool
    """True if the hint adapts."""


@dataclass(frozen=True)
class Plan:
    """The runs of a scenario. As a text it is the output of `cutline check`."""

    name: str
    title: str | None
    runs: int
    """The number of runs: each point runs with each seed."""
    seeds: tuple[int, ...]
    duration_s: float
    """The simulated time."""
    warm_up_s: float
    """The time at which measuring starts."""
    measure_until_s: float
    """The time at which measuring ends."""
    nodes: int
    """The number of nodes of the first point."""
    hosts: int
    """The number of hosts of the first point: nodes with one neighbour."""
    links: int
    """The number of one-way links of the first point."""
    paths: HostPaths | None
    """The shortest paths between hosts of the first point; None for a network that is not generated."""
    engine: Engine | None
    """The engine that simulates the network of the first point; None for a laboratory."""
    flows: tuple[FlowGroup, ...]
    """The groups of flows of the first point."""
    points: tuple[Point, ...]
    warnings: tuple[str, ...]
    """Settings that are allowed but probably mistakes."""
    _text: str = field(repr=False, default="")

    def __str__(self) -> str:
        return self._text


class Scenario:
    """A scenario: the text of a file, and settings. It does not change; `with_` and `sweep` return another one.

    Keys and values are checked by `check` and `run`, which report all problems of a scenario at once.
    """

    __slots__ = ("_file", "_name", "_settings", "_text")

    def __init__(self, text: str, name: str, settings: Sequence[tuple[str, str]] = ()) -> None:
        """Use `from_file`, `from_toml` or `from_dict`. Settings are paths and values as the command's `--set` has them."""
        self._text = text
        self._name = name
        self._settings = tuple(settings)
        self._file = _native.ScenarioFile.parse(text, name).with_settings(list(self._settings))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file. The command reads the same file with the same result."""
        file = _native.ScenarioFile.load(_path("path", path))
        return cls(file.text(), file.name())

    @classmethod
    def from_toml(cls, text: str, name: str = "scenario.toml") -> Scenario:
        """Reads a scenario from the text of a file. Messages call the file `name`."""
        if not isinstance(text, str):
            raise ArgumentError(f"text: {text!r} is not allowed: expected a str with TOML", "text")
        return cls(text, name)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], name: str = "scenario.toml") -> Scenario:
        """Makes a scenario of a mapping with the keys of a scenario file. `text` is the equivalent file."""
        if not isinstance(content, Mapping):
            raise ArgumentError(f"content: {content!r} is not allowed: expected a mapping", "content")
        return cls(_toml.document("content", content), name)

    @property
    def text(self) -> str:
        """The text of the scenario's file, without the settings."""
        return self._text

    @property
    def name(self) -> str:
        """The name of the scenario's file."""
        return self._name

    @property
    def settings(self) -> dict[str, str]:
        """The settings of `with_` and `sweep`, in their order, as the command's `--set` has them."""
        return dict(self._settings)

    def with_(self, settings: Mapping[str, Any]) -> Scenario:
        """Returns the scenario with other values of some keys, such as `{"flow.audio.hint": 3, "dumbbell.rate": "15 Mbit/s"}`.

        A key is the path of `--set`. Keys that were swept before are no longer swept.
        """
        if not isinstance(settings, Mapping):
            raise ArgumentError(f"settings: {settings!r} is not allowed: expected a mapping of keys and values", "settings")
        pairs = [(_key("settings", key), _toml.setting("settings", key, value)) for key, value in settings.items()]
        return self._with(pairs, [key for key, _ in pairs])

    def sweep(self, values: Grid) -> Scenario:
        """Returns the scenario with a sweep in the place of its own: all combinations of the values, the first key slowest.

        `{"flow.audio.hint": range(1, 17), "dumbbell.queue.aqm": ["pi", "pie"]}` has 32 points. Keys that vary together are a tuple:
        `{("dumbbell.rate", "dumbbell.delay"): [("4 Mbit/s", "20 ms"), ("40 Mbit/s", "5 ms")]}`. `{}` sweeps nothing.
        """
        if not isinstance(values, Mapping):
            raise ArgumentError(f"values: {values!r} is not allowed: expected a mapping of keys and lists of values", "values")
        alone: dict[str, list[Any]] = {}
        together: list[dict[str, list[Any]]] = []
        keys_and_values: Mapping[Any, Any] = values
        for key, found in keys_and_values.items():
            members = _members(key, found)
            if isinstance(key, str):
                alone[key] = members
                continue
            for row in members:
                if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(key):
                    raise ArgumentError(
                        f"values: {key!r} has the value {row!r}: expected a tuple with a value for each of the {len(key)} keys", "values")
            together.append({one: [row[at] for row in members] for at, one in enumerate(key)})
        table: dict[str, Any] = {**alone, **({"together": together} if together else {})}
        keys = [*alone, *(key for bundle in together for key in bundle)]
        # A setting of a key would take the key out of the sweep.
        return self._with([("sweep", _toml.value("values", "sweep", table))], ["sweep", *keys])

    def check(self) -> Plan:
        """Returns the plan of the runs. A scenario that `cutline check` refuses is a `ScenarioError` with the same messages."""
        return _plan(*self._file.check())

    def _with(self, settings: Sequence[tuple[str, str]], replaced: Sequence[str]) -> Scenario:
        kept = [pair for pair in self._settings if pair[0] not in replaced]
        return Scenario(self._text, self._name, [*kept, *settings])

    def _extensions(self) -> list[type[extend.Extension]]:
        """The classes of Python that the scenario uses."""
        return extend._used("\n".join([self._text, *(value for _, value in self._settings)]))

    def _identity(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        return self._text, self._name, self._settings

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Scenario) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[type[Scenario], tuple[str, str, tuple[tuple[str, str], ...]]]:
        return Scenario, self._identity()

    def __repr__(self) -> str:
        return f"Scenario({self._name!r}, {self.settings!r})"


def _plan(text: str, document: str) -> Plan:
    found = json.loads(document)
    flows = tuple(map(_group, found.pop("flows")))
    points = tuple(Point(**point) for point in found.pop("points"))
    seeds, said = tuple(found.pop("seeds")), tuple(found.pop("warnings"))
    paths = HostPaths(**between) if (between := found.pop("paths")) else None
    engine = Engine(**simulated) if (simulated := found.pop("engine")) else None
    return Plan(**found, paths=paths, engine=engine, flows=flows, points=points, seeds=seeds, warnings=said, _text=text)


def _group(flow: dict[str, Any]) -> FlowGroup:
    arrivals = Arrivals(**process) if (process := flow.pop("arrivals")) else None
    return FlowGroup(quality_class=flow.pop("class"), arrivals=arrivals, **flow)


def run(
    scenario: Scenario | str | os.PathLike[str],
    seeds: int | range | None = None,
    jobs: int | None = None,
    progress: bool = True,
    *,
    results: str | os.PathLike[str] | None = "results",
    resume: bool = False,
    force: bool = False,
) -> Results:
    """Runs every point of a scenario's sweep with every seed, as `cutline run` does, and returns the results.

    scenario: a scenario, or the path of its file.
    seeds: the number of replications, or their seeds as a range such as range(1, 11); None for those of the scenario.
    jobs: the number of runs at a time; None for one per core, or one with an extension in Python.
    progress: whether to show progress, if stderr is a terminal or a notebook.
    results: the folder of all results, in which those of the scenario have a folder of its name; None keeps them in memory.
    resume: whether to keep the stored runs and add the missing ones.
    force: whether to replace stored results of another scenario, other seeds or another version, which are an error otherwise.

    Other threads of Python run meanwhile. Ctrl-C stops the runs: `Interrupted` has the results of those that finished. Runs that
    fail are a `RunError` at the end, with the results of the others. An exception of an extension ends the runs and is raised here.
    Distributions with a full bucket, whose percentiles are wrong, are a `CutlineWarning`.
    """
    return _execute(scenario, seeds, jobs, progress, results, resume, force, None)


def _execute(
    scenario: Scenario | str | os.PathLike[str], seeds: int | range | None, jobs: int | None, progress: bool,
    results: str | os.PathLike[str] | None, resume: bool, force: bool, laboratory: _native.Laboratory | None,
) -> Results:
    """Runs a scenario in the simulator or in a laboratory, for `run` and `lab.run`."""
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_file(_path("scenario", scenario))
    if resume and force:
        raise ArgumentError("resume: not allowed together with force", "resume")
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ArgumentError(f"jobs: {jobs!r} is not allowed: expected a number from 1, or None for one per core", "jobs")
    scenario = scenario._with(_seeds(seeds), [key for key, _ in _seeds(seeds)])
    folder = None if results is None else _path("results", results)
    # Measurements are not repeated: they never give the same again.
    usual = "repeat" if laboratory is None else "refuse"
    existing = "resume" if resume else "replace" if force else usual
    extensions = scenario._extensions()
    if extensions and jobs is None:
        # They share one interpreter: more threads would wait for each other.
        jobs = 1
    execution = _native.Execution.start(scenario._file, folder, existing, jobs, extend._identity(extensions), laboratory)
    for text in execution.warnings():
        warnings.warn(text, CutlineWarning, stacklevel=3)
    shown = Progress(progress)
    reasons: list[str] = []
    try:
        while not execution.wait(0.1):
            shown.update(*execution.progress())
        shown.end()
    except KeyboardInterrupt:
        execution.cancel()
        shown.end()
        # Another Ctrl-C ends the wait; finished runs are stored anyway.
        while not execution.wait(0.1):
            pass
        found, _ = execution.finish()
        raise Interrupted(*_interrupted(Results(found), execution.progress()[1])) from None
    except BaseException:
        execution.cancel()
        raise
    found, _ = execution.finish()
    raised = execution.raised()
    if raised is not None:
        error, seed = raised
        error.add_note(f"in a run of {scenario.name} with seed {seed}")
        raise error
    for kind, text in execution.messages():
        if kind == "failed":
            reasons.append(text)
        else:
            warnings.warn(text, CutlineWarning, stacklevel=3)
    for text in found.warnings():
        warnings.warn(text, CutlineWarning, stacklevel=3)
    finished = Results(found)
    if finished.failed:
        more = len(finished.failed) - _SHOWN_REASONS
        lines = reasons[:_SHOWN_REASONS] + ([f"and {more} more"] if more > 0 else [])
        raise RunError("\n".join([f"{len(finished.failed)} of {execution.progress()[1]} runs failed", *lines]), finished)
    return finished


def _interrupted(results: Results, total: int) -> tuple[str, Results | None]:
    done = len(results.info["finished"])
    if results.folder is not None:
        kept = f"kept in {results.folder}: the same call with resume=True runs the rest"
    else:
        kept = "in the attribute results of this exception"
    text = f"stopped: {done} of {total} runs are finished" + (f", {kept}" if done else "")
    return text, results if done else None


def _seeds(seeds: int | range | None) -> list[tuple[str, str]]:
    if seeds is None:
        return []
    if isinstance(seeds, range) and seeds.step == 1 and len(seeds) > 0 and seeds.start >= 0:
        return [("seed", str(seeds.start)), ("seeds", str(len(seeds)))]
    count = _toml._plain(seeds)
    if isinstance(count, int) and not isinstance(count, bool) and count >= 1:
        return [("seeds", str(count))]
    raise ArgumentError(
        f"seeds: {seeds!r} is not allowed: expected a number from 1, or a range of seeds such as range(1, 11)", "seeds")


def _members(key: object, found: Any) -> list[Any]:
    if not (isinstance(key, str) or (isinstance(key, tuple) and key and all(isinstance(one, str) for one in key))):
        raise ArgumentError(f"values: {key!r} is not a key: expected a str, or a tuple of str for keys that vary together", "values")
    found = _toml._plain(found)
    if isinstance(found, (str, bytes, Mapping)) or not hasattr(found, "__iter__"):
        raise ArgumentError(f"values: {key!r} has {found!r}: expected a list of values such as [1, 2, 3]", "values")
    return list(found)


def _key(parameter: str, key: object) -> str:
    if not isinstance(key, str):
        raise ArgumentError(f"{parameter}: {key!r} is not a key: expected a str such as \"flow.audio.hint\"", parameter)
    return key


def _path(parameter: str, path: object) -> str:
    try:
        found = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise ArgumentError(f"{parameter}: {path!r} is not allowed: expected a path", parameter)
    return found
