"""Results: tables, means with confidence intervals, and comparisons.

    results = cutline.open("results/dumbbell")
    flows = results.flows.to_polars()
    print(results.summary(by="flow.audio.hint", measures=["q"]))

A table hands its columns to other libraries without a copy, by Arrow's C data interface: `polars.DataFrame(results.flows)`,
`pyarrow.table(results.flows)`. Names, units and meanings of the columns are in docs/guide/results.md.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import ArgumentError, MissingLibrary

if TYPE_CHECKING:
    import numpy
    import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import xarray

    from .sim import Scenario

__all__ = ["Column", "Results", "Table"]

_SHOWN_ROWS = 10

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Column:
    """The description of a column."""

    name: str
    unit: str
    """The unit; - for none."""
    meaning: str


class Table:
    """A table. It is read once, when it is first needed; libraries that take Arrow's data share its memory."""

    __slots__ = ("_found", "_read", "file")

    file: str | None
    """The Parquet file of a stored table, for queries that read only a part of it; None for a table in memory."""

    def __init__(self, read: Callable[[], _native.Batches], file: str | None = None) -> None:
        """Use the attributes of `Results`."""
        self._read = read
        self._found: _native.Batches | None = None
        self.file = file

    @property
    def _batches(self) -> _native.Batches:
        if self._found is None:
            self._found = self._read()
        return self._found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of Arrow's C data interface."""
        return self._batches.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema in Arrow's C data interface."""
        return self._batches.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def columns(self) -> list[Column]:
        """The columns with their units and meanings."""
        return [Column(*parts) for parts in self._batches.columns()]

    def __getitem__(self, name: str) -> list[Any]:
        """The cells of a column as a list; None for a cell without a value. It needs no other library."""
        try:
            return self._batches.column(name)
        except KeyError:
            raise KeyError(f"{name}: there is no such column; there are: {', '.join(self._names())}") from None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict."""
        names = self._names()
        for cells in zip(*(self._batches.column(name) for name in names)):
            yield dict(zip(names, cells))

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of polars, without a copy."""
        library = _library("polars", "to_polars")
        frame: polars.DataFrame = library.DataFrame(self)
        return frame

    def lazy(self) -> polars.LazyFrame:
        """The table as a lazy frame of polars, which reads only the rows and columns that a query needs.

        A stored table is read from its file by polars, without the check of its digest. A table in memory is not copied.
        """
        library = _library("polars", "lazy")
        frame: polars.LazyFrame = self.to_polars().lazy() if self.file is None else library.scan_parquet(self.file)
        return frame

    def to_pyarrow(self) -> pyarrow.Table:
        """The table as a table of pyarrow, without a copy."""
        library = _library("pyarrow", "to_pyarrow")
        table: pyarrow.Table = library.table(self)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame of pandas, which needs pyarrow, too."""
        _library("pandas", "to_pandas")
        _library("pyarrow", "to_pandas")
        frame: pandas.DataFrame = self.to_pyarrow().to_pandas()
        return frame

    def _numbers(self, name: str) -> numpy.ndarray[Any, Any]:
        """Returns a column of numbers as an array: whole numbers, or floating-point numbers with NaN for a null."""
        import numpy

        is_whole, memory = self._batches.numbers(name)
        return numpy.frombuffer(memory, dtype=numpy.int64 if is_whole else numpy.float64)

    def _codes(self, name: str) -> tuple[list[str], numpy.ndarray[Any, Any]]:
        """Returns the different texts of a column, and for each row the place of its text among them, -1 for a null."""
        import numpy

        texts, memory = self._batches.codes(name)
        return texts, numpy.frombuffer(memory, dtype=numpy.int64)

    def _has_texts(self, name: str) -> bool:
        return self._batches.has_texts(name)

    def _names(self) -> list[str]:
        return [name for name, _, _ in self._batches.columns()]

    def _first(self) -> tuple[list[str], list[list[str]]]:
        names = self._names()
        cells = [[_shown(cell) for cell in self._batches.column(name, 0, _SHOWN_ROWS)] for name in names]
        return names, [list(row) for row in zip(*cells)]

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self._names())}>"

    def __str__(self) -> str:
        names, rows = self._first()
        widths = [max(len(cell) for cell in column) for column in zip(names, *rows)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [names, *rows]]
        rest = len(self) - len(rows)
        return "\n".join(lines + ([f"... and {rest} more rows"] if rest > 0 else []))

    def _repr_html_(self) -> str:
        names, rows = self._first()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{len(self)} rows</p>"


class Results:
    """The results of a scenario's runs, stored or in memory. Tables are read on request."""

    def __init__(self, native: _native.Results) -> None:
        """Use `cutline.run` or `cutline.open`."""
        self._native = native

    @cached_property
    def info(self) -> dict[str, Any]:
        """Contents of `summary.json`: the origin of the results, the runs and the machine."""
        info: dict[str, Any] = json.loads(self._native.info())
        return info

    @property
    def name(self) -> str:
        """The name of the scenario."""
        name: str = self.info["name"]
        return name

    @property
    def folder(self) -> str | None:
        """The folder of the results; None if they are in memory."""
        folder = self._native.folder()
        return None if folder is None else os.fspath(folder)

    @property
    def seeds(self) -> list[int]:
        """The seeds of the replications."""
        seeds: list[int] = self.info["seeds"]
        return seeds

    @property
    def complete(self) -> bool:
        """True if every run is in the tables."""
        complete: bool = self.info["complete"]
        return complete

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The runs that failed: run, point, seed and reason."""
        failed: list[dict[str, Any]] = self.info["failed"]
        return failed

    @property
    def scenario(self) -> Scenario:
        """The scenario, with the settings and seeds of these results."""
        from .sim import Scenario

        return Scenario(self.info["scenario"], self.info["scenario_file"], [tuple(pair) for pair in self.info["overrides"]])

    @property
    def command(self) -> str:
        """The command that repeats these runs. A scenario that was not read from a file must be written to one first."""
        info = self.info
        is_of_laboratory = "timing.parquet" in info["files"]
        words = ["cutline", *(["lab"] if is_of_laboratory else []), "run", info["scenario_file"]]
        for key, value in info["overrides"]:
            words += [f"--{key}", value] if key in ("seed", "seeds") else ["--set", f"{key}={value}"]
        if self.folder is not None:
            parent = os.path.dirname(self.folder)
            usual = "results/lab" if is_of_laboratory else "results"
            words += [] if parent == usual else ["--results", parent or "."]
        return shlex.join(words)

    @cached_property
    def flows(self) -> Table:
        """One row per flow and run."""
        return self._table("flows")

    @cached_property
    def queues(self) -> Table:
        """One row per queue and run."""
        return self._table("queues")

    @cached_property
    def series(self) -> Table:
        """One row per interval, flow and run."""
        return self._table("series")

    @cached_property
    def queue_series(self) -> Table:
        """One row per interval, queue and run."""
        return self._table("queue_series")

    @cached_property
    def distributions(self) -> Table:
        """One row per bucket of a distribution."""
        return self._table("distributions")

    @cached_property
    def timing(self) -> Table:
        """One row per run in the laboratory; none for simulations."""
        return self._table("timing")

    @cached_property
    def points(self) -> Table:
        """One row per swept key and point: the values of the keys."""
        return self._table("points")

    def summary(
        self,
        by: str | Sequence[str] | None = None,
        *,
        groups: Sequence[str] = (),
        points: Sequence[str] = (),
        measures: Sequence[str] = (),
        confidence: float = 0.95,
    ) -> Table:
        """Returns the means over the seeds with confidence intervals (Student's t), for each group, queue and measure.

        by: the swept keys along which there are means, such as "flow.audio.hint" or "hint"; the points that agree in them are averaged
            for each seed. None for all keys; () for one mean over all points.
        groups, points: only these groups and queues, and the points whose label contains one of these texts.
        measures: columns of the tables or quantities of distributions, such as ["q"]; empty for those that `cutline run` and
            `cutline compare` have.
        confidence: the confidence of the intervals.
        """
        if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
            raise ArgumentError(f"confidence: {confidence!r} is not allowed: expected a number between 0 and 1", "confidence")
        keys = None if by is None else _texts("by", by)
        found = self._native.summary(
            keys, _texts("groups", groups), _texts("points", points), _texts("measures", measures), float(confidence))
        return Table(lambda: found)

    def compare(
        self,
        other: Results | str | os.PathLike[str],
        *,
        groups: Sequence[str] = (),
        points: Sequence[str] = (),
        measures: Sequence[str] = (),
    ) -> Table:
        """Returns the differences between these results (a) and others (b), with 95 % confidence intervals, as `cutline compare`.

        Points are matched by the values of the swept keys, groups and queues by name. With the same seeds on both sides, the difference
        is taken seed by seed; otherwise by Welch's interval. Arguments are those of `summary`.
        """
        if not isinstance(other, Results):
            other = open(other)
        found = self._native.compare(
            other._native, _texts("groups", groups), _texts("points", points), _texts("measures", measures))
        return Table(lambda: found)

    def to_xarray(self, table: str = "flows") -> xarray.Dataset:
        """Returns a table as a data set of xarray: "flows", "queues", "series" or "queue_series".

        The swept keys are dimensions, with their values as coordinates; keys that vary together are along one dimension, which has the
        name of the first. The others are `seed`, `flow` or `link`, and for a course over time `start_s`. The columns are variables with
        their units and meanings. Missing values, such as those of a failed run, are NaN.
        """
        _library("numpy", "to_xarray")
        _library("xarray", "to_xarray")
        from . import _xarray

        if not isinstance(table, str):
            raise ArgumentError(f"table: {table!r} is not allowed: expected the name of a table", "table")
        found = {"flows": self.flows, "queues": self.queues, "series": self.series, "queue_series": self.queue_series}
        attributes = {"name": self.name, "made_by": f"cutline {self.info['version']}", "command": self.command}
        return _xarray.dataset(table, found.get(table, self.points), self.points, attributes)

    def _table(self, name: str) -> Table:
        file = f"{name}.parquet"
        is_stored = self.folder is not None and file in self.info["files"]
        return Table(lambda: self._native.table(name), os.path.join(self.folder or "", file) if is_stored else None)

    def __repr__(self) -> str:
        place = "in memory" if self.folder is None else f"in {self.folder}"
        return f"<Results {self.name!r} {place}: {_counted(len(self.info['points']), 'point')} x {_counted(len(self.seeds), 'seed')}>"

    def __str__(self) -> str:
        info = self.info
        planned, finished = len(info["points"]) * len(self.seeds), len(info["finished"])
        state = "complete" if self.complete else f"{finished} of {planned} runs"
        made_by = f"cutline {info['version']}" + (f" ({info['commit']})" if info["commit"] else "")
        return f"{self!r}, {state}\n{made_by}; repeat with:\n  {self.command}"


def open(path: str | os.PathLike[str]) -> Results:
    """Opens stored results: a folder such as results/dumbbell, or its summary.json."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"path: {path!r} is not allowed: expected a path", "path")
    return Results(_native.Results.open(os.fspath(path)))


def _texts(parameter: str, found: str | Iterable[str]) -> list[str]:
    if isinstance(found, str):
        return [found]
    texts = list(found) if isinstance(found, Iterable) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ArgumentError(f"{parameter}: {found!r} is not allowed: expected a str, or a list of str", parameter)
    return [str(text) for text in texts]


def _library(name: str, call: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibrary(f"{call} needs {name}, which is not installed: pip install {name}", name=name) from error


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
