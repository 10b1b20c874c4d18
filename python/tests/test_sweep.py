"""Sweeps over machines: the same bytes as on one machine, whatever is lost on the way."""

import functools
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import cutline
from cutline import _native, _sweep
from cutline.extend import Count, Law, register
from test_sim import InFolder, environment, small, started

try:
    import distributed
    import polars
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") from None

# Sixteen parts of a long sweep.
SIXTEEN = {"flow.audio.hint": list(range(1, 17))}
GRID = {"flow.audio.hint": [1, 6, 16], "dumbbell.queue.q-ref": ["10 packets", "20 packets", "40 packets", "80 packets"]}


@register
class Line(Law):
    """The probability grows with the queue."""

    name = "sweep-line"
    title = "Line"
    source = "this test"
    full = Count(500, least=1, most=10_000, unit="packets", source="this test", doc="Queue at which every packet is dropped.")

    def arrive(self, now, packet, backlog):
        return min(backlog.packets / self.full, 1.0)


def long(seconds=140):
    """A scenario whose runs take about half a second and are a part each: a part has 2e6 transmissions, 15,000 a second."""
    return small(duration=f"{seconds} s", interval="10 s").with_({"dumbbell.rate": "40 Mbit/s", "flow.bulk.count": 4})


def content(folder):
    """Digests of the data set's files, without the records."""
    files = [file for file in Path(folder).rglob("*.parquet")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@functools.cache
def content_here():
    """Digests of the long sweep as this process makes it without a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        return content(cutline.sweep(long(), SIXTEEN, results=folder, progress=False).folder)


def cluster(workers=2, **options):
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, processes=True,
                                    silence_logs=50, **options)


class OnThisMachine(InFolder):
    def test_the_rows_are_those_of_run(self):
        found = cutline.sweep("small.toml", GRID, seeds=2, progress=False)
        self.assertTrue(found.complete)
        self.assertEqual(found.folder, "results/sweeps/small")
        run = cutline.run(cutline.Scenario.from_file("small.toml").sweep(GRID), seeds=2, results=None, progress=False)
        for table in ("flows", "queues", "series", "queue_series", "distributions", "points"):
            with self.subTest(table):
                self.assertEqual(getattr(found, table).to_polars().rows(), getattr(run, table).to_polars().rows())
        loaded = found.load()
        self.assertEqual(list(loaded.summary(groups="audio", measures="q")), list(run.summary(groups="audio", measures="q")))
        self.assertTrue(loaded.complete)
        self.assertEqual(cutline.open_sweep("results/sweeps/small").flows.to_pyarrow().num_rows, 3 * 4 * 2 * 3)

    def test_the_table_is_queried_with_duckdb_and_polars(self):
        try:
            import duckdb
        except ImportError:
            self.skipTest("duckdb is not installed")
        found = cutline.sweep("small.toml", GRID, seeds=2, progress=False)
        query = f"""
            select p.number as hint, avg(f.q) as q from read_parquet('{found.flows.pattern}') f
            join read_parquet('{found.points.pattern}') p on p.point = f.point and p.key = 'flow.audio.hint'
            where f."group" = 'audio' group by p.number order by p.number"""
        ours = duckdb.sql(query).fetchall()
        lazy = (found.flows.lazy().filter(polars.col("group") == "audio")
                .join(found.points.lazy().filter(polars.col("key") == "flow.audio.hint"), on="point")
                .group_by("number").agg(polars.col("q").mean()).sort("number").collect().rows())
        self.assertEqual([hint for hint, _ in ours], [1, 6, 16])
        for one, other in zip(ours, lazy):
            self.assertAlmostEqual(one[1], other[1])

    def test_stored_runs_are_not_repeated(self):
        found = cutline.sweep(long(70), {"flow.audio.hint": [1, 6, 16]}, seeds=2, progress=False)
        self.assertGreater(len(found.info["parts"]), 2)
        before = content(found.folder)
        times = {file: file.stat().st_mtime_ns for file in Path(found.folder).rglob("part-*")}
        # Damage, a part that was interrupted, and one that is missing.
        Path(found.folder, "flows/part-00001.parquet").write_bytes(b"damaged")
        Path(found.folder, "records/part-00002.json").unlink()
        Path(found.folder, "queues/part-00000.parquet.unfinished").write_bytes(b"half")
        with self.assertRaises(cutline.ResultsDamaged):
            cutline.open_sweep(found.folder).load()
        again = cutline.sweep(long(70), {"flow.audio.hint": [1, 6, 16]}, seeds=2, progress=False)
        self.assertEqual(content(again.folder), before)
        self.assertTrue(again.complete)
        for file, at in times.items():
            is_made_again = "part-00001" in file.name or "part-00002" in file.name
            self.assertEqual(file.stat().st_mtime_ns != at, is_made_again, file)
        self.assertEqual(list(Path(found.folder).rglob("*.unfinished")), [])

    def test_distributions_with_a_full_bucket_are_warnings(self):
        """Parts have the warnings of their runs; those of earlier versions have none."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = cutline.sweep(long(), {"flow.audio.hint": [1, 16]}, progress=False)
        record, older = (Path(found.folder, f"records/part-0000{number}.json") for number in (0, 1))
        stored = json.loads(record.read_text())
        self.assertEqual(stored["warnings"], [])
        record.write_text(json.dumps(stored | {"warnings": ["the percentiles are wrong"]}))
        stored = json.loads(older.read_text())
        del stored["warnings"]
        older.write_text(json.dumps(stored))
        with self.assertWarnsRegex(cutline.CutlineWarning, "the percentiles are wrong") as found:
            cutline.sweep(long(), {"flow.audio.hint": [1, 16]}, progress=False)
        self.assertEqual((len(found.warnings), found.filename), (1, __file__))

    def test_no_file_is_written_through_a_symbolic_link(self):
        """Root may store results in a folder of another user."""
        folder = Path("results/sweeps/small")
        for table in ("flows", "records"):
            (folder / table).mkdir(parents=True)
        Path("precious").write_text("precious")
        for name in ("sweep.json.unfinished", "flows/part-00000.parquet.unfinished", "records/part-00000.json.unfinished"):
            (folder / name).symlink_to(Path("precious").absolute())
        found = cutline.sweep("small.toml", {"flow.audio.hint": [1, 6]}, progress=False)
        self.assertTrue(found.complete)
        self.assertEqual(Path("precious").read_text(), "precious")
        self.assertEqual([file for file in folder.rglob("*") if file.is_symlink()], [])

    def test_another_sweep_in_the_folder_is_an_error(self):
        cutline.sweep("small.toml", {"flow.audio.hint": [1, 6]}, progress=False)
        before = content("results/sweeps/small")
        for grid, seeds in (({"flow.audio.hint": [1, 7]}, None), ({"flow.audio.hint": [1, 6]}, 2)):
            with self.assertRaisesRegex(cutline.ResultsExist, "force=True"):
                cutline.sweep("small.toml", grid, seeds, progress=False)
        self.assertEqual(content("results/sweeps/small"), before)
        self.assertEqual(len(cutline.sweep("small.toml", {"flow.audio.hint": [1, 7]}, progress=False, force=True).load().info["points"]), 2)

    def test_ctrl_c_keeps_the_parts_and_the_next_call_runs_the_rest(self):
        script = "import cutline, test_sweep; cutline.sweep(test_sweep.long(), test_sweep.SIXTEEN, jobs=1)"
        with started(script) as process:
            stored = Path("results/sweeps/small/records")
            deadline = time.monotonic() + 60
            while not (stored.is_dir() and list(stored.glob("*.json"))) and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        self.assertRegex(said if isinstance(said, str) else said.decode(), r"Interrupted: stopped: \d+ of 16 parts are stored")
        kept = {file: file.stat().st_mtime_ns for file in stored.glob("*.json")}
        self.assertTrue(0 < len(kept) < 16, len(kept))
        found = cutline.sweep(long(), SIXTEEN, progress=False)
        self.assertTrue(found.complete)
        self.assertEqual({file: file.stat().st_mtime_ns for file in kept}, kept)

    def test_a_full_disk(self):
        """The folder is on a file system of 200 kB."""
        if os.geteuid() != 0:
            self.skipTest("only root mounts file systems")
        os.mkdir("disk")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", "disk"], capture_output=True).returncode != 0:
            self.skipTest("file systems cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", os.path.abspath("disk")])
        with self.assertRaisesRegex(cutline.StoreError, "cannot be written: No space left on device") as why:
            cutline.sweep(long(50), SIXTEEN, results="disk", progress=False)
        self.assertEqual(why.exception.errno, 28)
        self.assertEqual(list(Path("disk").rglob("*.unfinished")), [])
        subprocess.run(["mount", "-o", "remount,size=20m", "disk"], check=True)
        self.assertTrue(cutline.sweep(long(50), SIXTEEN, results="disk", progress=False).complete)

    def test_arguments(self):
        for arguments, parameter in (({"client": 3}, "client"), ({"jobs": 0}, "jobs"), ({"jobs": True}, "jobs"), ({"seeds": -1}, "seeds"),
                                     ({"grid": 3}, "values"), ({"results": 3}, "results"), ({"scenario": 3}, "scenario")):
            with self.subTest(arguments), self.assertRaises(cutline.ArgumentError) as why:
                cutline.sweep(**{"scenario": "small.toml", "progress": False, **arguments})
            self.assertEqual(why.exception.parameter, parameter)
        self.assertFalse(Path("results").exists())
        with self.assertRaises(cutline.ScenarioError):
            cutline.sweep("small.toml", {"flow.audio.hint": [1, 99]}, progress=False)
        self.assertFalse(Path("results").exists())
        with self.assertRaises(cutline.NoResults):
            cutline.open_sweep("results/sweeps/none")

    def test_grids_that_cannot_be(self):
        """Each is refused before anything is written, with the key and the allowed values."""
        for value in (float("nan"), float("inf"), float("-inf"), 2**63, None, b"x", 1j, {1: 2}):
            with self.subTest(value=value), self.assertRaisesRegex(cutline.ArgumentError, "dumbbell.rate.*expected"):
                cutline.sweep("small.toml", {"dumbbell.rate": ["4 Mbit/s", value]}, progress=False)
        for grid, said in (({"dumbbell.rate": ["4 Mbit/s", "-3 Mbit/s"]}, '-3 Mbit/s" is not allowed.*above 0'),
                           ({"flow.audio.app.rate": ["-1 kbit/s"]}, '-1 kbit/s" is not allowed'),
                           ({"flow.audio.hnit": [3]}, "hnit.*did you mean"), ({"flow.audoi.hint": [3]}, 'there is no flow "audoi"'),
                           ({"dumbbell.rate": [True]}, "dumbbell.rate"), ({"flow.bulk.count": ["x"]}, "flow.bulk.count"),
                           ({"flow.audio.hint": []}, "no values to sweep over")):
            with self.subTest(grid=grid), self.assertRaisesRegex(cutline.ScenarioError, f"(?s){said}"):
                cutline.sweep("small.toml", grid, progress=False)
        self.assertEqual(os.listdir(), ["small.toml"], "nothing is written")

    def test_another_process_stores_there(self):
        cutline.sweep("small.toml", {"flow.audio.hint": [1, 6]}, progress=False)
        lock = _native.FolderLock.take("results/sweeps/small")
        with self.assertRaises(cutline.ResultsLocked):
            cutline.sweep("small.toml", {"flow.audio.hint": [1, 6]}, progress=False)
        lock.release()

    def test_parts_depend_on_the_costs_alone(self):
        for costs in ([1.0], [1.0] * 1000, [5e6] * 10, [1e9, 1.0, 1.0, 1e9], [1e7] * 5000):
            parts = _sweep._divide(costs)
            self.assertEqual([part.number for part in parts], list(range(len(parts))))
            self.assertEqual([index for part in parts for index in range(part.start, part.end)], list(range(len(costs))))
            self.assertLessEqual(len(parts), 1001)


def when_stored(folder, count, act):
    """Starts a thread that acts as soon as so many parts of the sweep in a folder are stored. It gives up after a minute."""
    records, acted = Path(folder, "records").absolute(), threading.Event()

    def watch():
        end = time.monotonic() + 60
        while not (records.is_dir() and len(list(records.glob("*.json"))) >= count):
            if time.monotonic() > end:
                return
            time.sleep(0.01)
        act()
        acted.set()

    threading.Thread(target=watch, daemon=True).start()
    return acted


class OnACluster(InFolder):
    def test_a_killed_worker_and_a_restarted_one(self):
        """Dask starts another worker for each: complete, the same bytes, no run twice."""
        expected = content_here()
        with cluster() as made, distributed.Client(made) as client:
            nannies = list(made.workers.values())
            before = {nanny.worker_address for nanny in nannies}
            killed = when_stored("there/sweeps/small", 2, lambda: os.kill(nannies[0].pid, signal.SIGKILL))
            restarted = when_stored("there/sweeps/small", 6, lambda: client.restart_workers([nannies[1].worker_address]))
            there = cutline.sweep(long(), SIXTEEN, client=client, results="there", progress=False)
            self.assertTrue(killed.wait(60), "the worker was killed")
            self.assertTrue(restarted.wait(60), "the other one was restarted")
        self.assertTrue(there.complete)
        self.assertEqual(content(there.folder), expected)
        rows = there.flows.to_polars().select("run", "flow")
        self.assertEqual((rows.height, rows.unique().height), (16 * 5, 16 * 5))
        # Both happened during the sweep: parts were made by workers that were there, and by those that came for them.
        machines = {record["machine"] for record in there._records.values()}
        self.assertTrue(machines & before and machines - before, (machines, before))

    def test_ctrl_c(self):
        with cluster(1) as made, distributed.Client(made) as client:
            when_stored("results/sweeps/small", 2, lambda: os.kill(os.getpid(), signal.SIGINT))
            with self.assertRaisesRegex(cutline.Interrupted, r"\d+ of 16 parts are stored"):
                cutline.sweep(long(), SIXTEEN, client=client, progress=False)
            kept = set(Path("results/sweeps/small/records").glob("*.json"))
            self.assertTrue(2 <= len(kept) < 16, len(kept))
            self.assertTrue(cutline.sweep(long(), SIXTEEN, client=client, progress=False).complete, "the cluster is of use afterwards")

    def test_a_worker_of_another_version_that_comes_later(self):
        with cluster(1) as made, distributed.Client(made) as client:
            when_stored("results/sweeps/small", 2, lambda: client.run(_set_build, ("0.0.1", "elsewhere")))
            with self.assertRaisesRegex(cutline.WorkerError, "has version 0.0.1 elsewhere: expected"):
                cutline.sweep(long(), SIXTEEN, client=client, progress=False)
        self.assertGreaterEqual(len(list(Path("results/sweeps/small/records").glob("*.json"))), 2)
        self.assertEqual(list(Path("results").rglob("*.unfinished")), [])

    def test_a_lost_scheduler(self):
        """The scheduler is killed: a clear error; the next call, with another cluster, runs the rest."""
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        environ = {**environment(), "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}
        scheduler = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
             "--scheduler-file", "scheduler.json"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(scheduler.wait)
        self.addCleanup(scheduler.kill)
        deadline = time.monotonic() + 60
        while not Path("scheduler.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", "scheduler.json", "--nthreads", "1", "--no-dashboard",
             "--no-nanny", "--death-timeout", "5"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        client = distributed.Client(scheduler_file="scheduler.json")
        self.addCleanup(client.close, timeout=1)
        client.wait_for_workers(1, timeout=60)
        stored = Path("results/sweeps/small/records")

        killed = when_stored("results/sweeps/small", 2, scheduler.kill)
        with self.assertRaisesRegex(cutline.ClusterLost, "the same call"):
            cutline.sweep(long(), SIXTEEN, client=client, progress=False)
        self.assertTrue(killed.wait(60))
        kept = {file: file.stat().st_mtime_ns for file in stored.glob("*.json")}
        self.assertTrue(0 < len(kept) < 16, len(kept))
        found = cutline.sweep(long(), SIXTEEN, progress=False)
        self.assertTrue(found.complete)
        self.assertEqual({file: file.stat().st_mtime_ns for file in kept}, kept)
        self.assertEqual(content(found.folder), content_here())

    def test_clients_workers_and_extensions(self):
        with cluster(1) as made:
            with distributed.Client(made) as client:
                # A law in Python goes to the workers with its code.
                scenario = small().with_({"dumbbell.queue": {"aqm": "sweep-line", "limit": "100 packets"}})
                there = cutline.sweep(scenario, {"flow.audio.hint": [1, 16]}, client=client, results="there", progress=False)
                here = cutline.sweep(scenario, {"flow.audio.hint": [1, 16]}, results="here", progress=False)
                self.assertEqual(content(there.folder), content(here.folder))
                self.assertIn("+sweep-line:", there.info["version"])

                @register
                class Locked(Law):
                    name, title, source = "sweep-locked", "Locked", "this test"
                    lock = threading.Lock()

                    def arrive(self, now, packet, backlog):
                        return 0.0

                with self.assertRaisesRegex(cutline.ArgumentError, "client: Locked cannot be sent to workers") as why:
                    cutline.sweep(small().with_({"dumbbell.queue": {"aqm": "sweep-locked", "limit": "100 packets"}}), client=client,
                                  results="locked", progress=False)
                self.assertEqual(why.exception.parameter, "client")
                self.assertFalse(Path("locked").exists())

                class Failing(Law):
                    name, title, source = "sweep-failing", "Failing", "this test"

                    def arrive(self, now, packet, backlog):
                        raise ZeroDivisionError("in a worker")

                register(Failing)
                with self.assertRaisesRegex(ZeroDivisionError, "in a worker"):
                    cutline.sweep(small().with_({"dumbbell.queue": {"aqm": "sweep-failing", "limit": "100 packets"}}), client=client,
                                  results="failing", progress=False)
                # A worker of another version.
                client.run(_set_build, ("0.0.1", "elsewhere"))
                with self.assertRaisesRegex(cutline.WorkerError, "has version 0.0.1 elsewhere: expected"):
                    cutline.sweep("small.toml", client=client, results="other", progress=False)
                self.assertEqual(list(Path("other").rglob("part-*")), [])
                with self.assertRaises(cutline.ArgumentError):
                    cutline.sweep("small.toml", client=client, jobs=2)
            with self.assertRaisesRegex(cutline.ArgumentError, "client: it is closed"):
                cutline.sweep("small.toml", client=client, progress=False)


def _set_build(build):
    from cutline import _native

    _native.build = lambda: build


if __name__ == "__main__":
    unittest.main()
