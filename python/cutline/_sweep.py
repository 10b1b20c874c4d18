"""Sweeps over many machines: parts of a sweep run on a Dask cluster, or on the cores of this one, and become one data set.

The runs of a sweep, each point with each seed, are divided into parts of about the same estimated cost. The division depends on the
scenario alone, so every cluster writes the same files. The machines compute; this process alone writes. A part counts when its record is
in place, after its tables, so it counts once or not at all.

    FOLDER/sweep.json             the swept keys, and the parts
    FOLDER/points.parquet         the values of the swept keys
    FOLDER/flows/part-00017.parquet, FOLDER/queues/..., FOLDER/series/..., FOLDER/queue_series/..., FOLDER/distributions/...
    FOLDER/records/part-00017.json  digests, failures, time and machine of a part
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from . import _native, extend
from ._files import write_whole
from ._progress import Progress
from .errors import (
    ArgumentError, ClusterLost, Error, Interrupted, NoResults, ResultsDamaged, ResultsExist, RunError, StoreError, WorkerError,
)
from .results import Results, _counted, _library
from .sim import CutlineWarning, Grid, Scenario, _path, _seeds

if TYPE_CHECKING:
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]

__all__ = ["PartedTable", "Sweep", "open_sweep", "sweep"]

_TABLES = ("flows", "queues", "series", "queue_series", "distributions")
_MANIFEST = "sweep.json"
_SCHEMA = 1
# The most parts, and the cost of a part below which more parts only cost time: some 0.5 s.
_MOST_PARTS = 1000
_LEAST_COST = 2e6
_MOST_RUNS = 256
# A lost scheduler is noticed after so many seconds.
_PATIENCE = 5.0
_SHOWN_REASONS = 5


@dataclass(frozen=True)
class _Part:
    number: int
    start: int
    end: int
    cost: float

    @property
    def name(self) -> str:
        return f"part-{self.number:05}"


@dataclass(frozen=True)
class _Done:
    """The results of a part, as a machine sends them."""

    tables: Mapping[str, bytes]
    failed: list[tuple[int, str]]
    warnings: list[str]
    seconds: float
    machine: str


@dataclass(frozen=True)
class _Task:
    """The inputs with which a machine makes the plan."""

    text: str
    name: str
    settings: tuple[tuple[str, str], ...]
    extensions: str
    classes: bytes
    build: tuple[str, str]


class PartedTable:
    """A table of a sweep: one Parquet file for each part."""

    def __init__(self, folder: Path, names: list[str] | None) -> None:
        """Use the attributes of `Sweep`."""
        self._folder = folder
        self._names = names

    @property
    def files(self) -> list[str]:
        """The files, in the order of the runs."""
        if self._names is None:
            return [str(self._folder)]
        return [str(self._folder / f"{name}.parquet") for name in self._names]

    @property
    def pattern(self) -> str:
        """A pattern for all files, as DuckDB's read_parquet takes it. In an incomplete sweep, files that do not count yet may match."""
        return str(self._folder) if self._names is None else str(self._folder / "*.parquet")

    def lazy(self) -> polars.LazyFrame:
        """The table as a lazy frame of polars, which reads only the rows and columns that a query needs."""
        frame: polars.LazyFrame = _library("polars", "lazy").scan_parquet(self.files)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of polars."""
        frame: polars.DataFrame = self.lazy().collect()
        return frame

    def to_pyarrow(self) -> pyarrow.Table:
        """The table as a table of pyarrow."""
        table: pyarrow.Table = _library("pyarrow.dataset", "to_pyarrow").dataset(self.files).to_table()
        return table


class Sweep:
    """The data set of a sweep in a folder."""

    def __init__(self, folder: Path) -> None:
        """Use `cutline.sweep` or `cutline.open_sweep`."""
        self.folder: str = os.fspath(folder)
        self._root = folder
        self._manifest = _read_manifest(folder)

    @cached_property
    def _records(self) -> dict[int, dict[str, Any]]:
        return dict(sorted(_records(self._root).items()))

    @property
    def info(self) -> dict[str, Any]:
        """Contents of `sweep.json`: version, scenario, settings, the number of runs, and the parts."""
        return self._manifest

    @property
    def name(self) -> str:
        """The name of the scenario."""
        name: str = self._manifest["name"]
        return name

    @property
    def complete(self) -> bool:
        """True if every part is stored and no run failed."""
        return len(self._records) == len(self._manifest["parts"]) and not self.failed

    @property
    def failed(self) -> list[tuple[int, str]]:
        """The runs that failed: number and reason."""
        return [(index, reason) for record in self._records.values() for index, reason in record["failed"]]

    @property
    def scenario(self) -> Scenario:
        """The scenario with the settings and seeds of the sweep."""
        found = self._manifest
        return Scenario(found["scenario"], found["scenario_file"], [tuple(pair) for pair in found["overrides"]])

    @property
    def flows(self) -> PartedTable:
        """One row per flow and run."""
        return self._table("flows")

    @property
    def queues(self) -> PartedTable:
        """One row per queue and run."""
        return self._table("queues")

    @property
    def series(self) -> PartedTable:
        """One row per interval, flow and run."""
        return self._table("series")

    @property
    def queue_series(self) -> PartedTable:
        """One row per interval, queue and run."""
        return self._table("queue_series")

    @property
    def distributions(self) -> PartedTable:
        """One row per bucket of a distribution."""
        return self._table("distributions")

    @property
    def points(self) -> PartedTable:
        """One row per swept key and point: the values of the keys."""
        return PartedTable(self._root / "points.parquet", None)

    def load(self) -> Results:
        """Reads all tables into memory, for summaries, comparisons and figures. Digests are checked."""
        scenario, version = self.scenario, self._manifest["version"]
        plan = _native.SweepPlan.of(scenario._file, version[len(_native.build()[0]):], False)
        if plan.version() != version:
            raise StoreError(f"{self.folder} is of version {version}, which this is not: {plan.version()}")
        for number, record in self._records.items():
            if not _is_intact(self._root, number, record):
                raise ResultsDamaged(f"{self.folder}: part {number} is damaged; the same sweep makes it again")
        bounds = {number: self._manifest["parts"][number] for number in self._records}
        parts = [(f"part-{number:05}", start, end) for number, (start, end) in bounds.items()]
        return Results(plan.read(self._root, parts, self.failed))

    def _table(self, name: str) -> PartedTable:
        return PartedTable(self._root / name, [f"part-{number:05}" for number in self._records])

    def __repr__(self) -> str:
        return (f"<Sweep {self.name!r} in {self.folder}: {_counted(self._manifest['runs'], 'run')}, "
                f"{len(self._records)} of {_counted(len(self._manifest['parts']), 'part')} stored>")


def open_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Opens the data set of a sweep: its folder, such as results/sweeps/dumbbell."""
    return Sweep(Path(_path("path", path)))


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    grid: Grid | None = None,
    seeds: int | range | None = None,
    client: Any = None,
    *,
    results: str | os.PathLike[str] = "results",
    jobs: int | None = None,
    progress: bool = True,
    force: bool = False,
) -> Sweep:
    """Runs every point of a sweep with every seed, on this machine or on a Dask cluster, and returns the data set.

    scenario: a scenario, or the path of its file.
    grid: the keys and their values, as in `Scenario.sweep`; None for the scenario's own sweep.
    seeds: the number of replications, or their seeds as a range; None for those of the scenario.
    client: a `distributed.Client`; None for threads of this process.
    results: the folder of all results; the data set is in sweeps/NAME there.
    jobs: without a client, the number of parts at a time; None for one per core, or one with an extension in Python.
    progress: whether to show progress with an estimate of the rest, if stderr is a terminal or a notebook.
    force: whether to replace the data set of another sweep, which is an error otherwise.

    Stored parts are not run again: after Ctrl-C, a crash or a lost cluster, the same call runs the rest. The rows are those of
    `cutline.run`, and the files are the same bytes on one core or on a cluster, also if workers are lost.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_file(_path("scenario", scenario))
    if grid is not None:
        scenario = scenario.sweep(grid)
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ArgumentError(f"jobs: {jobs!r} is not allowed: expected a number from 1, or None for one per core", "jobs")
    if jobs is not None and client is not None:
        raise ArgumentError("jobs: not allowed together with client, whose workers say how many threads they have", "jobs")
    scenario = scenario._with(_seeds(seeds), [key for key, _ in _seeds(seeds)])
    extensions = scenario._extensions()
    identity = extend._identity(extensions)
    if client is not None:
        _check_client(client)
    task = _Task(scenario._text, scenario._name, scenario._settings, identity, b"" if client is None else _pickled(extensions), _native.build())
    plan = _native.SweepPlan.of(scenario._file, identity, True)
    for text in plan.warnings():
        warnings.warn(text, CutlineWarning, stacklevel=2)
    runs = plan.runs()
    parts = _divide([cost for _, _, _, cost in runs])
    root = Path(_path("results", results)) / "sweeps" / plan.name()
    manifest = _manifest(plan, scenario, runs, parts)
    lock = _native.FolderLock.take(os.fspath(root))
    try:
        store = _Store(root, plan, manifest, force)
        todo = [part for part in parts if part.number not in store.stored]
        if todo:
            # The longest first, so that the machines end together.
            todo.sort(key=lambda part: -part.cost)
            threads = jobs or (1 if extensions else os.cpu_count() or 1)
            machines: _Machines = _Threads(plan, threads) if client is None else _Cluster(client, task)
            _run(machines, store, todo, Progress(progress), len(parts))
    finally:
        lock.release()
    found = Sweep(root)
    for record in found._records.values():
        # Earlier versions have stored records without warnings.
        for text in record.get("warnings", ()):
            warnings.warn(text, CutlineWarning, stacklevel=2)
    if found.failed:
        reasons = [f"{runs[index][1]} with seed {runs[index][2]} failed: {reason}" for index, reason in found.failed]
        more = len(reasons) - _SHOWN_REASONS
        lines = reasons[:_SHOWN_REASONS] + ([f"and {more} more"] if more > 0 else [])
        raise RunError("\n".join([f"{len(reasons)} of {len(runs)} runs failed; the others are in {root}", *lines]))
    return found


def _divide(costs: list[float]) -> list[_Part]:
    """Divides runs into parts of about the same cost. It depends on the costs alone."""
    target = max(sum(costs) / _MOST_PARTS, _LEAST_COST)
    parts: list[_Part] = []
    start, cost = 0, 0.0
    for index, one in enumerate(costs):
        cost += one
        if cost >= target or index + 1 - start == _MOST_RUNS or index + 1 == len(costs):
            parts.append(_Part(len(parts), start, index + 1, cost))
            start, cost = index + 1, 0.0
    return parts


def _manifest(
    plan: _native.SweepPlan, scenario: Scenario, runs: list[tuple[str, str, int, float]], parts: list[_Part],
) -> dict[str, Any]:
    digest = hashlib.sha256()
    for run, point, seed, _ in runs:
        digest.update(f"{run}\t{point}\t{seed}\n".encode())
    version, commit = _native.build()
    return {
        "schema": _SCHEMA, "name": plan.name(), "version": plan.version(), "commit": commit, "scenario_file": scenario._name,
        "scenario": scenario._text, "overrides": [list(pair) for pair in scenario._settings], "runs": len(runs),
        "plan": digest.hexdigest(), "parts": [[part.start, part.end] for part in parts],
    }


class _Store:
    """The files of a data set. One process writes them."""

    def __init__(self, root: Path, plan: _native.SweepPlan, manifest: dict[str, Any], force: bool) -> None:
        self.root = root
        self.stored: set[int] = set()
        try:
            if (root / _MANIFEST).exists():
                self._resume(manifest, force)
            else:
                self._remove()
            if not (root / _MANIFEST).exists():
                for table in (*_TABLES, "records"):
                    (root / table).mkdir(exist_ok=True)
                plan.write_points(os.fspath(root))
                _write(root / _MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
        except OSError as error:
            if isinstance(error, Error):
                raise
            raise _store_error(root, error) from error

    def _resume(self, manifest: dict[str, Any], force: bool) -> None:
        try:
            known = _read_manifest(self.root)
        except StoreError:
            if not force:
                raise
            known = {}
        # The same program makes the same parts of the same plan.
        if any(known.get(key) != manifest[key] for key in ("schema", "version", "plan", "parts")):
            if not force:
                raise ResultsExist(
                    f"{self.root} has another sweep, which would be lost: {known.get('scenario_file')}, version {known.get('version')}, "
                    f"{known.get('runs')} runs\nforce=True replaces it; results=FOLDER, or another name (with_({{\"name\": ...}})), stores "
                    "the new one elsewhere")
            self._remove()
            return
        for number, record in _records(self.root).items():
            # Runs that failed are tried again.
            if not record["failed"] and _is_intact(self.root, number, record):
                self.stored.add(number)
            else:
                (self.root / "records" / f"part-{number:05}.json").unlink()
        for table in (*_TABLES, "records"):
            for file in (self.root / table).iterdir():
                if file.name.endswith(".unfinished") or file.name.split(".")[0] not in {f"part-{number:05}" for number in self.stored}:
                    file.unlink()

    def _remove(self) -> None:
        """Removes a data set, and no other file. The manifest is removed first: the rest is useless without it."""
        (self.root / _MANIFEST).unlink(missing_ok=True)
        (self.root / "points.parquet").unlink(missing_ok=True)
        for table in (*_TABLES, "records"):
            folder = self.root / table
            for file in folder.glob("*part-*") if folder.is_dir() else ():
                file.unlink()

    def add(self, part: _Part, done: _Done) -> None:
        """Stores a part: completely or not at all."""
        if part.number in self.stored:
            return
        digests = {}
        try:
            for table in _TABLES:
                _write(self.root / table / f"{part.name}.parquet", done.tables[table])
                digests[table] = hashlib.sha256(done.tables[table]).hexdigest()
            record = {"start": part.start, "end": part.end, "files": digests, "failed": done.failed, "warnings": done.warnings,
                      "seconds": done.seconds, "machine": done.machine}
            _write(self.root / "records" / f"{part.name}.json", json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise _store_error(self.root, error) from error
        self.stored.add(part.number)


def _write(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all."""
    write_whole(path, path.with_name(path.name + ".unfinished"), content)


def _store_error(root: Path, error: OSError) -> StoreError:
    place = error.filename or root
    return StoreError(error.errno, f"{place} cannot be written: {error.strerror or error}; stored parts stay, and the same call runs the rest")


def _read_manifest(root: Path) -> dict[str, Any]:
    path = root / _MANIFEST
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise NoResults(f"{root} has no {_MANIFEST}\nexpected a folder written by cutline.sweep") from None
    except OSError as error:
        raise StoreError(error.errno, f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ResultsDamaged(f"{path} is damaged: {error}\nforce=True replaces the sweep") from error
    if found.get("schema") != _SCHEMA:
        raise StoreError(f"{path} has the schema {found.get('schema')}: expected {_SCHEMA}")
    return found


def _records(root: Path) -> dict[int, dict[str, Any]]:
    found = {}
    for file in sorted((root / "records").glob("part-*.json")):
        try:
            found[int(file.stem[5:])] = json.loads(file.read_text())
        except ValueError:
            # Not of a part, or damaged: the part is made again.
            continue
    return found


def _is_intact(root: Path, number: int, record: Mapping[str, Any]) -> bool:
    for table in _TABLES:
        try:
            content = (root / table / f"part-{number:05}.parquet").read_bytes()
        except OSError:
            return False
        if hashlib.sha256(content).hexdigest() != record["files"].get(table):
            return False
    return True


class _Machines(Protocol):
    """The place where parts run."""

    def start(self, part: _Part) -> None:
        """Starts a part."""
        ...

    def free(self) -> int:
        """Returns the number of further parts that may be started."""
        ...

    def wait(self, seconds: float) -> Iterator[tuple[_Part, _Done | None]]:
        """Waits for at most this time, and returns the finished parts; None for a part that was cancelled."""
        ...

    def stop(self) -> None:
        """Ends all parts early."""
        ...


def _run(machines: _Machines, store: _Store, todo: list[_Part], shown: Progress, count: int) -> None:
    """Runs parts, and stores each one when it arrives."""
    all_runs, all_cost = sum(part.end - part.start for part in todo), sum(part.cost for part in todo)
    done_runs, done_cost, waiting, running = 0, 0.0, list(reversed(todo)), 0
    try:
        while waiting or running:
            while waiting and machines.free() > 0:
                machines.start(waiting.pop())
                running += 1
            for part, done in machines.wait(0.1):
                running -= 1
                if done is not None:
                    store.add(part, done)
                    done_runs, done_cost = done_runs + part.end - part.start, done_cost + part.cost
            shown.update(done_runs, all_runs, done_cost, all_cost, f"{len(store.stored)}/{count} parts")
    except KeyboardInterrupt:
        text = f"stopped: {len(store.stored)} of {count} parts are stored in {store.root}: the same call runs the rest"
        raise Interrupted(text) from None
    finally:
        shown.end()
        machines.stop()


class _Threads:
    """Threads of this process. The simulator does not hold the interpreter's lock."""

    def __init__(self, plan: _native.SweepPlan, threads: int) -> None:
        self._plan = plan
        self._count = threads
        self._pool = futures.ThreadPoolExecutor(threads, "cutline sweep")
        self._running: dict[futures.Future[_Done | None], _Part] = {}

    def start(self, part: _Part) -> None:
        self._running[self._pool.submit(_simulate, self._plan, part.start, part.end, "")] = part

    def free(self) -> int:
        return self._count - len(self._running)

    def wait(self, seconds: float) -> Iterator[tuple[_Part, _Done | None]]:
        ended, _ = futures.wait(self._running, seconds, futures.FIRST_COMPLETED)
        for one in ended:
            yield self._running.pop(one), one.result()

    def stop(self) -> None:
        if self._running:
            self._plan.cancel()
        self._pool.shutdown(cancel_futures=True)


class _Cluster:
    """Workers of a Dask cluster."""

    def __init__(self, client: Any, task: _Task) -> None:
        self._client = client
        self._task = task
        self._dask = _library("distributed", "client")
        self._ready = self._dask.as_completed([])
        self._running: dict[Any, _Part] = {}
        self._seen = time.monotonic()
        self._most = (0.0, 0)
        self._check_workers()

    def _check_workers(self) -> None:
        """Refuses a cluster whose workers have another version, before the first part."""
        try:
            builds = self._client.run(_native.build)
        except ModuleNotFoundError as error:
            raise WorkerError(f"client: a worker has no {error.name}: install the version {self._task.build[0]} of cutline on all workers") from error
        except OSError as error:
            raise ClusterLost(f"client: the cluster does not answer: {error}") from error
        for address, build in builds.items():
            _check_build(str(address), tuple(build), self._task.build)

    def start(self, part: _Part) -> None:
        future = self._client.submit(_on_worker, self._task, part.start, part.end, key=f"cutline-{id(self):x}-{part.name}", pure=False)
        self._running[future] = part
        self._ready.add(future)

    def free(self) -> int:
        now = time.monotonic()
        if now - self._most[0] > 1.0:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            threads = sum(worker["nthreads"] for worker in workers.values())
            # Each thread has a part, and another one waits for it.
            self._most = now, max(2 * threads, 2)
        return self._most[1] - len(self._running)

    def wait(self, seconds: float) -> Iterator[tuple[_Part, _Done | None]]:
        until = time.monotonic() + seconds
        while not self._ready.has_ready() and time.monotonic() < until:
            self._check_scheduler()
            time.sleep(0.005)
        while self._ready.has_ready():
            future = next(self._ready)
            part = self._running.pop(future, None)
            if part is not None:
                yield part, self._result(future, part)
                future.release()

    def _check_scheduler(self) -> None:
        now = time.monotonic()
        if self._client.status == "running":
            self._seen = now
        elif self._client.status == "closed" or now - self._seen > _PATIENCE:
            raise ClusterLost(
                "client: the scheduler is lost: the parts that have come are stored, and the same call with another client runs the rest")

    def _result(self, future: Any, part: _Part) -> _Done:
        try:
            done: _Done = future.result(timeout=60)
            return done
        except futures.CancelledError as error:
            raise ClusterLost(
                f"client: the cluster has lost {part.name}: the parts that have come are stored, and the same call runs the rest") from error
        except TimeoutError as error:
            raise ClusterLost(f"client: the results of {part.name} do not come; the same call runs the rest") from error
        except ModuleNotFoundError as error:
            raise WorkerError(f"client: a worker has no module {error.name}, which the sweep needs") from error
        except self._dask.scheduler.KilledWorker as error:
            raise WorkerError(
                f"client: workers were lost again and again while they ran {part.name}: is there enough memory? The parts that have come are "
                "stored") from error

    def stop(self) -> None:
        if not self._running:
            return
        try:
            self._client.cancel(list(self._running), force=True)
        except Exception:
            # A cluster that is lost has nothing to cancel.
            pass
        self._running.clear()


def _check_client(client: Any) -> None:
    dask = _library("distributed", "client")
    if not isinstance(client, dask.Client):
        raise ArgumentError(f"client: {client!r} is not allowed: expected a distributed.Client, or None for threads", "client")
    if client.asynchronous:
        raise ArgumentError("client: an asynchronous client is not allowed: expected distributed.Client(...) without asynchronous=True", "client")
    if client.status != "running":
        raise ArgumentError(f"client: it is {client.status}: expected a client that is connected", "client")


def _pickled(extensions: Iterable[type[extend.Extension]]) -> bytes:
    """Returns classes for workers, with their code: workers need not have the module that they come from."""
    classes = list(extensions)
    if not classes:
        return b""
    pickler = _library("cloudpickle", "client")
    modules = [sys.modules[name] for name in {one.__module__ for one in classes} if name != "__main__" and name in sys.modules]
    by_value = [module for module in modules if module.__name__ not in pickler.list_registry_pickle_by_value()]
    try:
        for module in by_value:
            pickler.register_pickle_by_value(module)
        content: bytes = pickler.dumps(classes)
        return content
    except Exception as error:
        names = ", ".join(one.__name__ for one in classes)
        raise ArgumentError(
            f"client: {names} cannot be sent to workers: {error}: expected a class that uses modules, numbers and texts, but no open files, "
            "locks or threads", "client") from error
    finally:
        for module in by_value:
            pickler.unregister_pickle_by_value(module)


_PLANS: dict[tuple[Any, ...], _native.SweepPlan] = {}
_PLANS_LOCK = threading.Lock()


def _on_worker(task: _Task, start: int, end: int) -> _Done:
    """Runs a part on a worker."""
    address: str = _library("distributed", "sweep").get_worker().address
    _check_build(address, _native.build(), task.build)
    key = (task.text, task.name, task.settings, task.extensions)
    with _PLANS_LOCK:
        plan = _PLANS.get(key)
        if plan is None:
            if task.classes:
                for one in _library("cloudpickle", "sweep").loads(task.classes):
                    extend.register(one)
            _PLANS.clear()
            plan = _PLANS[key] = _native.SweepPlan.of(Scenario(task.text, task.name, task.settings)._file, task.extensions, False)
    done = _simulate(plan, start, end, address)
    if done is None:
        raise WorkerError(f"{address} has cancelled a part")
    return done


def _check_build(machine: str, found: tuple[str, ...], expected: tuple[str, str]) -> None:
    if tuple(found) != expected:
        raise WorkerError(f"client: the worker {machine} has version {' '.join(found)}: expected {' '.join(expected)}, which this process has")


def _simulate(plan: _native.SweepPlan, start: int, end: int, machine: str) -> _Done | None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cutline-") as folder:
        simulated = plan.simulate(start, end, folder)
        if simulated is None:
            return None
        failed, warned = simulated
        tables = {table: Path(folder, f"{table}.parquet").read_bytes() for table in _TABLES}
    return _Done(tables, failed, warned, round(time.monotonic() - began, 6), machine)
