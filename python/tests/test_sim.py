"""The simulator in Python: the same runs as the command's, and what people do with them on a normal day."""

import copy
import hashlib
import io
import json
import os
import pickle
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import warnings
from pathlib import Path

import cutline
from cutline.sim import Scenario

REPOSITORY = Path(__file__).parents[2]
COMMAND = next((found for profile in ("trial", "release", "debug") if os.access(
    found := Path(os.environ.get("CUTLINE_COMMAND", REPOSITORY / "target" / profile / "cutline")), os.X_OK)), None)
TEXT = """
name = "small"
duration = "2 s"
warm-up = "500 ms"
interval = "500 ms"
[dumbbell]
rate = "4 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "pi", limit = "100 packets", q-ref = "20 packets", tsq = true }
[[flow]]
name = "bulk"
count = 2
class = "file-transfer"
file-size = "1 MB"
distributions = "flow"
series = true
transport = { protocol = "tcp" }
app = { kind = "bulk" }
[[flow]]
name = "audio"
class = "audio"
hint = 6
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
"""
TABLES = ("flows", "queues", "series", "queue_series", "distributions", "points")


def small(**settings):
    return Scenario.from_toml(TEXT, "small.toml").with_({key.replace("__", "."): value for key, value in settings.items()})


def lasting():
    """A scenario whose runs take long enough to be interrupted."""
    return small(duration="20000 s", interval="10 s").with_({"flow.bulk.count": 20, "dumbbell.rate": "40 Mbit/s"})


def digest_of(content):
    return hashlib.sha256(content).hexdigest()


class InFolder(unittest.TestCase):
    """Tests in a folder of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        Path("small.toml").write_text(TEXT)


@unittest.skipIf(COMMAND is None, "the command is not built: make trial")
class SameAsTheCommand(InFolder):
    def command(self, *words, code=0):
        done = subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_the_files_are_the_same_bytes(self):
        self.command("run", "small.toml", "--seed", "3", "--seeds", "2", "--results", "theirs", "--set", "flow.bulk.count=3",
                     "--set", 'sweep={ "flow.audio.hint" = [1, 16], "dumbbell.queue.q-ref" = ["10 packets", "30 packets"] }')
        scenario = Scenario.from_file("small.toml").with_({"flow.bulk.count": 3}).sweep(
            {"flow.audio.hint": [1, 16], "dumbbell.queue.q-ref": ["10 packets", "30 packets"]})
        cutline.run(scenario, seeds=range(3, 5), jobs=3, results="ours")
        theirs, ours = ({path.name: path.read_bytes() for path in Path(side, "small").glob("*.parquet")} for side in ("theirs", "ours"))
        self.assertEqual(sorted(theirs), sorted(f"{name}.parquet" for name in TABLES))
        self.assertTrue(theirs == ours, "the tables differ")
        summaries = [json.loads(Path(side, "small/summary.json").read_text()) for side in ("theirs", "ours")]
        for summary in summaries:
            for key in ("started_at", "finished_at", "digest", "commit"):
                del summary[key]
        self.assertEqual(*summaries)

    def test_command_and_package_continue_the_runs_of_each_other(self):
        cutline.run("small.toml", seeds=2)
        self.command("run", "small.toml", "--seeds", "3", "--resume")
        stored = Path("results/small/flows.parquet").read_bytes()
        results = cutline.run("small.toml", seeds=3, resume=True)
        self.assertEqual(Path("results/small/flows.parquet").read_bytes(), stored)
        self.assertEqual((results.complete, results.seeds), (True, [1, 2, 3]))

    def test_errors_are_those_of_check(self):
        for settings in ({"flow.audio.hint": 17}, {"dumbbell.rate": "15 Mbits"}, {"dumbbell.queue.limit": "many", "seeds": 0},
                         {"flow.bulk.congestion": "reno"}):
            with self.subTest(settings):
                words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
                said = self.command("check", "small.toml", *words, code=2).stderr
                with self.assertRaises(cutline.ScenarioError) as why:
                    Scenario.from_file("small.toml").with_(settings).check()
                self.assertEqual(said, f"error: {why.exception}\n")
                documents = json.loads(self.command("check", "small.toml", *words, "--json", code=2).stdout)["errors"]
                self.assertEqual([vars(problem) for problem in why.exception.problems], documents)

    def test_the_plan_is_that_of_check(self):
        self.assertEqual(self.command("check", "small.toml").stdout, str(Scenario.from_file("small.toml").check()))

    def test_the_printed_command_repeats_the_runs(self):
        scenario = Scenario.from_file("small.toml").with_({"title": "two words"}).sweep({"flow.audio.hint": [3, 4]})
        results = cutline.run(scenario, seeds=2, results="a b")
        before = Path("a b/small/flows.parquet").read_bytes()
        shutil.rmtree("a b")
        self.assertIn(results.command, str(results))
        subprocess.run([COMMAND, *__import__("shlex").split(results.command)[1:]], check=True, capture_output=True, timeout=120)
        self.assertEqual(Path("a b/small/flows.parquet").read_bytes(), before)

    def test_a_comparison_has_the_numbers_of_the_command(self):
        ours = cutline.run(small(), seeds=3)
        cutline.run(small(name="other", flow__audio__hint=16), seeds=3)
        said = json.loads(self.command("compare", "results/small", "results/other", "--json").stdout)["measures"]
        found = list(ours.compare("results/other"))
        self.assertEqual([(row["name"], row["measure"], row["difference"]) for row in found],
                         [(row["name"], row["measure"], row["difference"]) for row in said])
        self.assertEqual([row["low"] for row in found], [row["interval"] and row["interval"][0] for row in said])


class Runs(InFolder):
    def test_results_are_the_same_in_memory_and_stored(self):
        stored = cutline.run(small(), seeds=2)
        in_memory = cutline.run(small(), seeds=2, results=None)
        self.assertEqual((stored.folder, in_memory.folder), ("results/small", None))
        for name in TABLES:
            with self.subTest(name):
                one, other = getattr(stored, name), getattr(in_memory, name)
                self.assertEqual(list(one), list(other))
                self.assertEqual(one.columns, other.columns)
        self.assertEqual(list(stored.summary()), list(in_memory.summary()))
        opened = cutline.open("results/small/summary.json")
        self.assertEqual((list(opened.flows), opened.complete), (list(stored.flows), True))
        self.assertEqual(len(stored.timing), 0)

    def test_the_number_of_jobs_changes_nothing(self):
        rows = [list(cutline.run(small(), seeds=4, jobs=jobs, results=None).flows) for jobs in (1, 3)]
        self.assertEqual(*rows)

    def test_seeds_are_a_number_or_a_range(self):
        seeds = lambda seeds: cutline.run(small(seed=7), seeds=seeds, results=None).seeds
        self.assertEqual((seeds(None), seeds(2), seeds(range(3, 6))), ([7], [7, 8], [3, 4, 5]))

    def test_other_threads_of_python_run_meanwhile(self):
        ended, steps = threading.Event(), [0]

        def count():
            while not ended.is_set():
                steps[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        try:
            cutline.run(small(duration="500 s", interval="1 s"), seeds=2, jobs=1, results=None)
        finally:
            ended.set()
            thread.join()
        self.assertGreater(steps[0], 10)

    def test_runs_in_two_threads_at_once(self):
        found = {}
        threads = [threading.Thread(target=lambda hint=hint: found.update({hint: cutline.run(
            small(name=f"small-{hint}", flow__audio__hint=hint), seeds=2)})) for hint in (1, 16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([len(found[hint].flows) for hint in (1, 16)], [6, 6])

    def test_results_that_would_be_lost_are_an_error(self):
        cutline.run(small(), seeds=1)
        with self.assertRaisesRegex(cutline.ResultsExist, "force=True") as why:
            cutline.run(small(flow__audio__hint=3), seeds=1)
        self.assertIsInstance(why.exception, FileExistsError)
        self.assertEqual(len(cutline.run(small(flow__audio__hint=3), seeds=1, force=True).flows), 3)
        with self.assertRaisesRegex(cutline.ResultsExist, "resume=True"):
            cutline.run(small(flow__audio__hint=3), seeds=2)
        self.assertEqual(cutline.run(small(flow__audio__hint=3), seeds=2, resume=True).seeds, [1, 2])

    def test_damaged_results_are_an_error_and_made_again(self):
        before = list(cutline.run(small(), seeds=1).flows)
        with Path("results/small/flows.parquet").open("ab") as file:
            file.write(b"x")
        with self.assertRaisesRegex(cutline.ResultsDamaged, "flows.parquet is damaged"):
            len(cutline.open("results/small").flows)
        with self.assertWarnsRegex(cutline.CutlineWarning, "re-running"):
            again = cutline.run(small(), seeds=1, resume=True)
        self.assertEqual(list(again.flows), before)

    def test_a_folder_that_cannot_be_written_is_an_error(self):
        Path("file").touch()
        with self.assertRaisesRegex(cutline.StoreError, "file/small") as why:
            cutline.run(small(), results="file")
        self.assertIsInstance(why.exception, OSError)
        self.assertIsNotNone(why.exception.errno)

    @unittest.skipUnless(os.path.exists("/dev/full") and os.geteuid() == 0, "a full disk needs root")
    def test_a_full_disk_is_an_error_and_the_folder_can_be_used_again(self):
        os.mkdir("full")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", "full"], capture_output=True).returncode:
            self.skipTest("no file systems may be mounted here")
        self.addCleanup(subprocess.run, ["umount", "full"], check=True)
        with self.assertRaises(cutline.StoreError):
            cutline.run(small(), seeds=20, results="full")
        subprocess.run(["mount", "-o", "remount,size=8m", "full"], check=True)
        self.assertEqual(len(cutline.run(small(), seeds=20, results="full", resume=True).flows), 60)

    def test_a_folder_in_which_another_process_stores_is_an_error(self):
        script = "import cutline, test_sim; cutline.run(test_sim.lasting(), seeds=4)"
        with started(script) as process:
            wait_for(lambda: Path("results/small/summary.json").exists())
            with self.assertRaisesRegex(cutline.ResultsLocked, "another process is storing results"):
                cutline.run(lasting(), seeds=4)
            process.kill()

    def test_warnings_of_check_are_warnings(self):
        with self.assertWarnsRegex(cutline.CutlineWarning, "it drops all of them"):
            cutline.run(small(dumbbell__queue__limit="100 B"), results=None)

    def test_a_distribution_with_a_full_bucket_is_a_warning(self):
        """The number of packets is that of months. So the stored results of a run get such a bucket."""
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            self.skipTest("pyarrow is not installed")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stored = cutline.run(small(), seeds=1)
            self.assertEqual(len(cutline.run(small(), seeds=1, resume=True).flows), 3)
        table = pyarrow.table(stored.distributions)
        subject, quantity = table["subject"][0].as_py(), table["quantity"][0].as_py()
        place, most = table.column_names.index("count"), 2**32 - 1
        counts = [most, most, *table["count"].to_pylist()[2:]]
        file, summary = Path("results/small/distributions.parquet"), Path("results/small/summary.json")
        digest, compression = digest_of(file.read_bytes()), parquet.ParquetFile(file).metadata.row_group(0).column(0).compression
        parquet.write_table(table.set_column(place, table.schema.field(place), [counts]), file, compression=compression)
        text = summary.read_text().replace(digest, digest_of(file.read_bytes()))
        head, _, tail = re.split('(?<=\n  "digest": ")([0-9a-f]{64})', text)
        summary.write_text(head + digest_of((head + tail).encode()) + tail)
        expected = f"base with seed 1: {quantity} of the .* {subject} has {most} values in a bucket.*shorten the measured time"
        with self.assertWarnsRegex(cutline.CutlineWarning, expected) as found:
            cutline.run(small(), seeds=1, resume=True)
        # Two buckets of one distribution have one warning, which names this file.
        self.assertEqual((len(found.warnings), found.filename), (1, __file__))

    def test_invalid_scenarios_are_errors_before_the_first_run(self):
        graph = Scenario.from_toml("""
            name = "programs"
            duration = "2 s"
            [[node]]
            name = "a"
            [[node]]
            name = "b"
            [[link]]
            from = "a"
            to = "b"
            rate = "4 Mbit/s"
            delay = "10 ms"
            queue = { aqm = "drop-tail", limit = "100 packets" }
            [[flow]]
            name = "objects"
            from = "a"
            to = "b"
            transport = { protocol = "tcp" }
            program = "dirm"
            app = { kind = "bulk" }
            """, "programs.toml")
        with self.assertRaisesRegex(cutline.ScenarioError, "program is available only in the laboratory with routers"):
            cutline.run(graph)
        self.assertFalse(Path("results").exists())


def environment():
    """The environment of a process that imports this file."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])}


def started(script):
    return subprocess.Popen([sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


class Interruption(InFolder):
    SCRIPT = """
        import cutline, test_sim
        class Progress(cutline.sim.Progress):
            def update(self, done, *_):
                if done == 2:
                    print("two runs are finished", flush=True)
                    self.update = lambda *_: None
        cutline.sim.Progress = Progress
        scenario = test_sim.small().sweep({"duration": ["2 s", "200000 s"]})
        try:
            cutline.run(scenario, seeds=2, jobs=1, results=RESULTS)
        except KeyboardInterrupt as why:
            print(type(why).__name__, why)
            print(len(why.results.flows), why.results.complete, why.results.folder)
    """

    def interrupted(self, results, when):
        with started(textwrap.dedent(self.SCRIPT).replace("RESULTS", repr(results))) as process:
            when(process)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=120)
            self.assertLess(time.monotonic() - begin, 60, "the running simulation ends early")
            self.assertEqual(process.returncode, 0, errors)
            return out

    def test_finished_runs_are_kept(self):
        finished = lambda: len([name for name in os.listdir("results/small/runs") if "." not in name]) == 2
        out = self.interrupted("results", lambda _: wait_for(lambda: Path("results/small/runs").exists() and finished()))
        self.assertIn("Interrupted stopped: 2 of 4 runs are finished, kept in results/small: the same call with resume=True", out)
        self.assertIn("6 False results/small", out)
        self.assertEqual(len(cutline.open("results/small").flows), 6)

    def test_the_exception_has_results_that_are_not_stored(self):
        out = self.interrupted(None, lambda process: self.assertEqual(process.stdout.readline(), "two runs are finished\n"))
        self.assertIn("Interrupted stopped: 2 of 4 runs are finished, in the attribute results", out)
        self.assertIn("6 False None", out)

    def test_unawaited_runs_end(self):
        begin = time.monotonic()
        execution = cutline._native.Execution.start(small(duration="200000 s", interval="10 s")._file, "results", "repeat", 1)
        del execution
        wait_for(lambda: self.is_free())
        self.assertLess(time.monotonic() - begin, 60)

    def is_free(self):
        try:
            return cutline.run(small(), force=True).complete
        except cutline.ResultsLocked:
            return False

    def test_a_killed_process_leaves_whole_runs(self):
        with started("import cutline, test_sim; cutline.run(test_sim.small().sweep({'duration': ['2 s', '200000 s']}), jobs=1)") as process:
            wait_for(lambda: Path("results/small/runs").exists() and any("." not in name for name in os.listdir("results/small/runs")))
            process.kill()
        # The scenario of the run that is stored, as a part of another sweep.
        again = cutline.run(small().sweep({"duration": ["2 s", "3 s"]}), force=True)
        self.assertTrue(again.complete)
        self.assertFalse(Path("results/small/runs").exists())


class ProgressBar(InFolder):
    def shown(self, script):
        """Output of a script on a terminal."""
        parent, child = pty.openpty()
        process = subprocess.Popen([sys.executable, "-c", script], env={**environment(), "COLUMNS": "70"}, stdout=child, stderr=child)
        os.close(child)
        text = b""
        try:
            while part := os.read(parent, 4096):
                text += part
        except OSError:
            pass
        os.close(parent)
        self.assertEqual(process.wait(60), 0, text)
        return text.decode()

    def test_progress_is_on_terminals_and_removed_at_the_end(self):
        script = "import cutline, test_sim; cutline.run(test_sim.small(duration='1000 s'), seeds=3, jobs=1, results=None%s)"
        text = self.shown(script % "")
        self.assertRegex(text, r"█+░* \d/3 base  0:0\d elapsed")
        self.assertTrue(text.rstrip("\r").endswith(" "), "the line is blank at the end")
        self.assertTrue(all(len(line) < 70 for line in text.split("\r")), text)
        self.assertEqual(self.shown(script % ", progress=False"), "")

    def test_progress_is_only_on_terminals(self):
        with started("import cutline, test_sim; cutline.run(test_sim.small(), results=None)") as process:
            self.assertEqual(process.communicate(timeout=60), ("", ""))


class Scenarios(InFolder):
    def test_a_mapping_is_the_same_as_its_file(self):
        import tomllib

        content = tomllib.loads(TEXT)
        content["sweep"] = {"flow.audio.hint": range(1, 3), "together": [{"dumbbell.rate": ["4 Mbit/s", "8 Mbit/s"], "flow.bulk.count": [1, 2]}]}
        made = Scenario.from_dict(content)
        self.assertEqual(tomllib.loads(made.text), {**content, "sweep": {**content["sweep"], "flow.audio.hint": [1, 2]}})
        chained = small().sweep({"flow.audio.hint": [1, 2], ("dumbbell.rate", "flow.bulk.count"): [("4 Mbit/s", 1), ("8 Mbit/s", 2)]})
        labels = [point.label for point in made.check().points]
        self.assertEqual(labels, [point.label for point in chained.check().points])
        self.assertEqual((len(labels), labels[1]), (4, "flow.audio.hint=1,dumbbell.rate=8 Mbit/s,flow.bulk.count=2"))
        rows = [list(cutline.run(one, results=None).flows) for one in (made, chained)]
        self.assertEqual(*rows)

    def test_settings_and_sweeps_replace_each_other(self):
        swept = small().sweep({"flow.audio.hint": [1, 2], "flow.bulk.count": [1, 2]})
        points = lambda scenario: len(scenario.check().points)
        self.assertEqual(points(swept), 4)
        self.assertEqual(points(swept.with_({"flow.audio.hint": 3})), 2)
        self.assertEqual(points(swept.with_({"flow.audio.hint": 3}).sweep({"flow.audio.hint": [1, 2, 3]})), 3)
        self.assertEqual(points(swept.sweep({})), 1)
        self.assertEqual(small().settings, {}, "the first one has not changed")

    def test_values_keep_their_kinds(self):
        scenario = small(name="6", title=" x ", duration="3 s", flow__audio__hint=3, dumbbell__queue__tsq=False)
        self.assertEqual(scenario.settings, {"name": '"6"', "title": '" x "', "duration": "3 s", "flow.audio.hint": "3",
                                             "dumbbell.queue.tsq": "false"})
        plan = scenario.check()
        self.assertEqual((plan.name, plan.title, plan.duration_s, plan.runs), ("6", " x ", 3.0, 1))
        self.assertEqual([(flow.name, flow.count, flow.quality_class, flow.hint) for flow in plan.flows],
                         [("bulk", 2, "file-transfer", 16), ("audio", 1, "audio", 3)])

    def test_a_plan_has_the_generated_network(self):
        plan = Scenario.from_file(REPOSITORY / "examples/fat-tree.toml").check()
        self.assertEqual((plan.hosts, plan.nodes, plan.paths), (16, 36, cutline.sim.HostPaths(2, 6, 4)))
        self.assertEqual((plan.engine.name, plan.engine.stages, plan.engine.window_s), ("event-loop", None, None))
        self.assertIn("too short for a window", plan.engine.reason)
        [group] = plan.flows
        self.assertEqual((group.arrivals.load, group.arrivals.from_s, group.arrivals.until_s), (.2, 0, 1))
        self.assertIsNone(small().check().paths)

    def test_a_scenario_is_a_value(self):
        scenario = small(flow__audio__hint=3)
        for other in (pickle.loads(pickle.dumps(scenario)), copy.deepcopy(scenario), small(flow__audio__hint=3)):
            self.assertEqual((other, hash(other)), (scenario, hash(scenario)))
        self.assertNotEqual(scenario, small())
        self.assertEqual(repr(scenario), "Scenario('small.toml', {'flow.audio.hint': '3'})")

    def test_results_know_their_scenario(self):
        scenario = small(flow__audio__hint=3)
        results = cutline.run(scenario, seeds=2, results=None)
        self.assertEqual(list(cutline.run(results.scenario, results=None).flows), list(results.flows))
        self.assertEqual(results.command, "cutline run small.toml --set flow.audio.hint=3 --seeds 2")


class WrongInput(InFolder):
    def refused(self, kind, parts, call, *words, **more):
        with self.assertRaises(kind) as why:
            call(*words, **more)
        self.assertIsInstance(why.exception, cutline.Error)
        for part in parts:
            self.assertIn(part, str(why.exception))
        self.assertEqual(os.listdir(), ["small.toml"], "nothing is written")
        return why.exception

    def test_errors_of_arguments_name_the_allowed_values(self):
        run, scenario, wrong = cutline.run, small(), cutline.ArgumentError
        for name, value in [("seeds", 0), ("seeds", -1), ("seeds", 1.5), ("seeds", "3"), ("seeds", True), ("seeds", range(0)),
                            ("seeds", range(1, 9, 2)), ("seeds", [1, 2]), ("jobs", 0), ("jobs", -2), ("jobs", 1.0), ("jobs", True),
                            ("results", 3), ("results", b"x")]:
            with self.subTest(name, value=value):
                error = self.refused(wrong, [f"{name}: {value!r} is not allowed: expected"], run, scenario, **{name: value})
                self.assertEqual(error.parameter, name)
                self.assertIsInstance(error, ValueError)
        self.refused(wrong, ["resume: not allowed together with force"], run, scenario, resume=True, force=True)
        self.refused(wrong, ["scenario: 3 is not allowed: expected a path"], run, 3)
        self.refused(wrong, ["path: None"], Scenario.from_file, None)
        self.refused(wrong, ["text: b'x'"], Scenario.from_toml, b"x")
        self.refused(wrong, ["content: [1]", "mapping"], Scenario.from_dict, [1])

    def test_values_that_no_scenario_has(self):
        wrong = cutline.ArgumentError
        for value in (float("nan"), float("inf"), 2**63, None, object, b"x", {1: 2}, 1j):
            for call in (lambda: small().with_({"dumbbell.rate": value}), lambda: Scenario.from_dict({"dumbbell": {"rate": value}}),
                         lambda: small().sweep({"dumbbell.rate": [value]})):
                self.refused(wrong, ["dumbbell.rate", "expected"], call)
        self.refused(wrong, ["3 is not a key"], small().with_, {3: 4})
        self.refused(wrong, ["settings: 3 is not allowed"], small().with_, 3)
        for values in ({"flow.audio.hint": 3}, {"flow.audio.hint": "123"}, {3: [1]}, {("a", "b"): [(1,)]}, {("a", "b"): [3]}, [1], {(): [1]}):
            self.refused(wrong, ["values: "], small().sweep, values)

    def test_scenarios_that_cannot_be(self):
        wrong = cutline.ScenarioError
        self.refused(wrong, ["nosuch.toml: cannot be read"], cutline.run, "nosuch.toml")
        self.refused(wrong, ["x.toml:1:", "not TOML"], Scenario.from_toml, "= 3", "x.toml")
        self.refused(wrong, ['there is no flow "audoi", did you mean "audio"?'], small().with_, {"flow.audoi.hint": 3})
        self.refused(wrong, ["dumbbell.rate", "value -3 Mbit/s is not allowed", "above 0"], cutline.run, small(dumbbell__rate="-3 Mbit/s"))
        self.refused(wrong, ["there are no values to sweep over"], cutline.run, small().sweep({"flow.audio.hint": []}))
        self.refused(wrong, ["more than 100000 points"], cutline.run, small().sweep(
            {"flow.audio.hint": range(1, 17), "flow.bulk.count": range(10000)}))
        error = self.refused(wrong, ["hnit", "did you mean"], small().with_({"flow.audio.hnit": 3, "seeds": "x"}).check)
        self.assertEqual([problem.key for problem in error.problems], ["seeds", "flow.audio.hnit"])
        self.assertEqual(pickle.loads(pickle.dumps(error)).problems, error.problems)

    def test_results_that_are_not_there(self):
        self.refused(cutline.NoResults, ["nosuch has no summary.json"], cutline.open, "nosuch")
        self.refused(cutline.ArgumentError, ["path: 3"], cutline.open, 3)
        self.assertTrue(issubclass(cutline.NoResults, FileNotFoundError))

    def test_questions_without_an_answer(self):
        results, wrong = cutline.run(small().sweep({"flow.audio.hint": [1, 16]}), results=None), cutline.ArgumentError
        self.refused(wrong, ["by: rate: not a swept key; expected one of: flow.audio.hint"], results.summary, "rate")
        self.refused(wrong, ["groups: video: there is none; expected one of: bulk, audio"], results.summary, groups=["video"])
        self.refused(wrong, ["measures: goodput", "did you mean goodput_bps?"], results.summary, measures="goodput")
        self.refused(wrong, ["points: no point of small"], results.summary, points="hint=2")
        for confidence in (0, 1, -1, 95, float("nan"), "x", None, True):
            self.refused(wrong, ["confidence: ", "expected a number between 0 and 1"], results.summary, confidence=confidence)
        for name in ("by", "groups", "points", "measures"):
            self.refused(wrong, [f"{name}: [3] is not allowed"], results.summary, **{name: [3]})
        with self.assertRaisesRegex(KeyError, "no such column"):
            results.flows["nosuch"]
        other = cutline.run(small(name="other"), results=None)
        self.refused(cutline.NothingFound, ["no point and group in common"], other.compare, cutline.run(
            small().sweep({"flow.audio.hint": [2, 3]}), results=None))


class Tables(InFolder):
    @classmethod
    def setUpClass(cls):
        scenario = small().sweep({"flow.audio.hint": [1, 16], "dumbbell.queue.aqm": ["pi", "drop-tail"]}).with_(
            {"dumbbell.queue": {"limit": "100 packets"}})
        cls.results = cutline.run(scenario, seeds=3, results=None)

    def library(self, name):
        try:
            return __import__(name)
        except ImportError:
            self.skipTest(f"{name} is not installed")

    def test_pyarrow_shares_the_memory(self):
        pyarrow = self.library("pyarrow")
        table = pyarrow.table(self.results.flows)
        self.assertEqual((table.num_rows, table.column_names), (36, [column.name for column in self.results.flows.columns]))
        field = table.schema.field("goodput_bps")
        self.assertEqual((field.metadata[b"unit"], field.type), (b"bit/s", pyarrow.float64()))
        self.assertEqual(table["q"].to_pylist(), self.results.flows["q"])
        addresses = [pyarrow.table(self.results.flows)["goodput_bps"].chunk(0).buffers()[1].address for _ in range(2)]
        self.assertEqual(*addresses)
        self.assertEqual(pyarrow.schema(self.results.flows), table.schema)

    def test_polars_shares_the_memory(self):
        polars, pyarrow = self.library("polars"), self.library("pyarrow")
        chunks = [chunk.to_numpy(allow_copy=False) for chunk in polars.DataFrame(self.results.series)["goodput_bps"].get_chunks()]
        addresses = [chunk.buffers()[1].address for chunk in pyarrow.table(self.results.series)["goodput_bps"].chunks]
        self.assertEqual([chunk.__array_interface__["data"][0] for chunk in chunks], addresses)

    def test_every_table_goes_to_every_library(self):
        for name in TABLES + ("timing",):
            table = getattr(self.results, name)
            for library in ("pyarrow", "polars", "pandas"):
                with self.subTest(name, library=library):
                    self.library(library)
                    frame = getattr(table, f"to_{library}")()
                    self.assertEqual(len(frame), len(table))
                    if library == "polars":
                        self.assertEqual(frame.to_dicts(), list(table))

    def test_a_table_outlives_the_results(self):
        polars = self.library("polars")
        frame = polars.DataFrame(cutline.run(small(), results=None).flows)
        self.assertGreater(frame["goodput_bps"].sum(), 0)

    def test_frames_answer_questions(self):
        polars = self.library("polars")
        flows = self.results.flows.to_polars()
        by_hand = flows.filter(polars.col("group") == "audio").group_by("point", maintain_order=True).agg(polars.col("q").mean())
        found = self.results.summary(groups=["audio"], measures=["q"])
        for one, other in zip(by_hand["q"], found["mean"], strict=True):
            self.assertAlmostEqual(one, other, 12)

    def test_a_summary_has_the_swept_keys_and_intervals(self):
        every = list(self.results.summary(measures=["q"], groups=["audio"]))
        self.assertEqual([(row["flow.audio.hint"], row["dumbbell.queue.aqm"], row["name"]) for row in every][:3],
                         [(1, "pi", "audio"), (1, "drop-tail", "audio"), (16, "pi", "audio")])
        along = list(self.results.summary("hint", measures=["q"], groups="audio"))
        self.assertEqual([(list(row)[0], row["flow.audio.hint"], row["n"]) for row in along],
                         [("flow.audio.hint", 1, 3), ("flow.audio.hint", 16, 3)])
        self.assertAlmostEqual(along[0]["mean"], (every[0]["mean"] + every[1]["mean"]) / 2, 12)
        self.assertTrue(all(row["low"] <= row["mean"] <= row["high"] for row in along))
        wide, narrow = (self.results.summary((), measures="q", confidence=c)["high"][0] for c in (0.99, 0.5))
        self.assertGreater(wide, narrow)
        two = list(self.results.summary((), measures=["q", "loss_ratio"]))
        self.assertEqual([(row["name"], row["measure"]) for row in two],
                         [("bulk", "q"), ("bulk", "loss_ratio"), ("audio", "q"), ("audio", "loss_ratio")])
        single = cutline.run(small(), results=None).summary(measures=["utilisation"])
        self.assertEqual((single["low"][0], single["kind"][0], single["n"][0]), (None, "queue", 1))

    def test_a_comparison_is_a_table(self):
        other = cutline.run(small(name="other").sweep({"flow.audio.hint": [1, 16]}), seeds=3, results=None)
        found = list(self.results.compare(other, groups=["audio"], points=["aqm=pi"], measures=["goodput_bps"]))
        self.assertEqual([(row["name"], row["measure"], row["pairing"]) for row in found], [("audio", "goodput_bps", "paired")] * 2)
        self.assertTrue(all(row["low"] <= row["difference"] <= row["high"] for row in found))
        same = self.results.compare(self.results)
        self.assertEqual((set(same["difference"]), set(same["significant"])), ({0.0}, {False}))

    def test_a_table_can_be_looked_at(self):
        text = str(self.results.flows).splitlines()
        self.assertEqual((len(text), text[-1]), (12, "... and 26 more rows"))
        self.assertRegex(text[0], r"^run +point +seed")
        self.assertIn("<Table of 36 rows: run, point", repr(self.results.flows))
        self.assertIn("<th>goodput_bps</th>", self.results.flows._repr_html_())
        self.assertEqual(str(self.results.timing).splitlines()[0][:3], "run")
        self.assertIn("4 points x 3 seeds>, complete", str(self.results))


class WithoutLibraries(InFolder):
    """The package needs no other one; a call that does says which."""

    SCRIPT = """
        import sys
        class Blocked:
            def find_spec(self, name, *_):
                if name.split(".")[0] in ("numpy", "pyarrow", "polars", "pandas"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, Blocked())
        import cutline, test_sim
        results = cutline.run(test_sim.small(), seeds=2, results=None)
        print(results.summary(measures=["q"]), results.flows["flow"], len(list(results.series)) > 0)
        for name in ("polars", "pyarrow", "pandas"):
            try:
                getattr(results.flows, f"to_{name}")()
            except cutline.MissingLibrary as why:
                print(type(why).__mro__[1].__name__, why)
    """

    def test_all_but_the_frames_works(self):
        with started(textwrap.dedent(self.SCRIPT)) as process:
            out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        for name in ("polars", "pyarrow", "pandas"):
            self.assertIn(f"Error to_{name} needs {name}, which is not installed: pip install {name}", out)
        self.assertIn("['bulk.1', 'bulk.2', 'audio', 'bulk.1', 'bulk.2', 'audio'] True", out)


if __name__ == "__main__":
    unittest.main()
