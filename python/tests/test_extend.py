"""Laws, sources of traffic and congestion controls in Python: they run, pass the conformance suites, and fail as they should."""

import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import unittest

import cutline
from cutline import extend
from cutline.extend import Choice, Control, Count, Flag, Law, Number, Source, Time, register
from test_sim import InFolder, small


# A run has called an extension.
CALLED = threading.Event()


@register
class Ramp(Law):
    """The probability grows with the queue."""

    name = "py-ramp"
    title = "Ramp"
    source = "this test"
    low = Count(20, least=0, most=10_000, unit="packets", source="this test", doc="Queue up to which nothing is dropped.")
    full = Count(400, least=1, most=100_000, unit="packets", source="this test", doc="Further packets at which everything is dropped.")
    moderate = {"full": 1000}

    def arrive(self, now, packet, backlog):
        CALLED.set()
        return min(max(backlog.packets - self.low, 0) / self.full, 1.0)


@register
class Sampled(Law):
    """The proportional-integral controller of TSQ's paper: state, samples at fixed times, and a reset."""

    name = "py-pi"
    title = "PI"
    source = "Hollot et al. 2001"
    q_ref = Count(100, least=1, most=10_000, unit="packets", source="this test", doc="Target of the queue.")
    interval = Time(1 / 128, least=0.001, most=1.0, source="128 Hz: both a power of two and a whole number of nanoseconds", doc="Time between samples.")
    a = Number(1.822e-4, least=0.0, most=1.0, unit="per packet", source="this test", doc="Gain for the queue.")
    b = Number(1.816e-4, least=0.0, most=1.0, unit="per packet", source="this test", doc="Gain for the last queue.")

    def begin(self):
        self.reset(0.0)

    def reset(self, now):
        self.p, self.last, self.start, self.samples = 0.0, 0, now, 1

    def advance(self, now, backlog):
        while self.start + self.samples * self.interval <= now:
            before = self.p, self.last
            step = self.a * (backlog.packets - self.q_ref) - self.b * (self.last - self.q_ref)
            self.p, self.last = min(max(step + self.p, 0.0), 1.0), backlog.packets
            self.samples += 1
            if (self.p, self.last) == before:
                # Nothing changes until the next packet.
                self.samples = max(self.samples, math.floor((now - self.start) / self.interval) + 1)

    def arrive(self, now, packet, backlog):
        return self.p

    def probability(self):
        return self.p


@register
class Chatter(Source):
    """Messages at random times."""

    name = "py-chatter"
    title = "Chatter"
    source = "this test"
    pause = Time(0.02, least=0.001, most=10.0, source="this test", doc="Mean time between messages.")
    size = Count(400, least=1, most=100_000, unit="B", source="this test", doc="Size of a message.")
    bursts = Flag(False, source="this test", doc="Whether two messages are written at a time.")

    def begin(self, now):
        self.deadline = now + self.random.expovariate(1 / self.pause)
        self.left = 1

    def write(self, now):
        self.left -= 1
        if self.left > 0:
            return self.size
        self.left = 2 if self.bursts else 1
        self.deadline = now + self.random.expovariate(1 / self.pause)
        return self.size


@register
class Download(Source):
    """One file after the other, with a pause between them."""

    name = "py-download"
    title = "Download"
    source = "this test"
    waits_for_delivery = True
    pause = Time(0.1, least=0.001, most=10.0, source="this test", doc="Pause between files.")

    def begin(self, now):
        self.deadline, self.written = now, 0

    def write(self, now):
        self.started, self.deadline = now, None
        self.written += 20_000
        return 20_000

    def delivered(self, now, total):
        if total < self.written or self.deadline is not None:
            return None
        self.deadline = now + self.pause
        return self.started, 20_000


@register
class Halving(Control):
    """Additive increase, multiplicative decrease."""

    name = "py-aimd"
    title = "AIMD"
    source = "RFC 5681"
    beta = Number(0.5, least=0.1, most=0.9, source="RFC 5681", doc="Share of the window that is left after a loss.")
    style = Choice("plain", choices=["plain", "careful"], source="this test", doc="Speed of the increase.")

    def begin(self):
        self.calls = 0

    def avoid(self, window, acked):
        self.calls += 1
        window.cwnd += max(self.mss * min(acked.bytes, self.mss) / window.cwnd * (1.0 if self.style == "plain" else 0.5), 1)

    def congested(self, window, flight):
        return max(self.beta * flight, 2 * self.mss)


EXTENDED = {"dumbbell.queue": {"aqm": "py-ramp", "limit": "100 packets", "full": "300 packets"},
            "flow.audio.app": {"kind": "py-chatter", "pause": "20 ms"},
            "flow.bulk.transport": {"protocol": "tcp", "congestion-control": "py-aimd", "beta": 0.7}}


class Conformance(unittest.TestCase):
    def test_the_suites_pass(self):
        for extension in (Ramp, Sampled, Chatter, Download, Halving):
            with self.subTest(extension.name):
                extend.check(extension)

    def test_a_law_that_is_wrong_fails_a_check_by_name(self):
        @register
        class Shared(Law):
            """Its objects share their state."""

            name = "py-shared"
            title = "Shared"
            source = "this test"
            memory = [0]

            def arrive(self, now, packet, backlog):
                self.memory[0] = (self.memory[0] + 1) % 1009
                return self.memory[0] / 1009 * (backlog.packets > 10)

        with self.assertRaisesRegex(cutline.ConformanceError, "py-shared"):
            extend.check(Shared)

    def test_a_control_that_grows_at_a_loss_fails(self):
        @register
        class Growing(Halving):
            name = "py-growing"

            def congested(self, window, flight):
                return 4 * flight

        with self.assertRaisesRegex(cutline.ConformanceError, "py-growing: a threshold of"):
            extend.check(Growing)

    def test_unregistered_names_are_refused(self):
        class Other(Ramp):
            name = "py-other"

        with self.assertRaises(cutline.ArgumentError):
            extend.check(Other)


class Runs(InFolder):
    def test_a_scenario_uses_all_three(self):
        scenario = small().with_(EXTENDED)
        results = cutline.run(scenario, seeds=2, results=None, progress=False)
        queue = next(row for row in results.queues if row["aqm"] == "py-ramp")
        self.assertGreater(queue["dropped_early"], 0)
        self.assertGreater(queue["utilisation"], 0.8)
        audio = [row["goodput_bps"] for row in results.flows if row["group"] == "audio"]
        self.assertEqual(len(set(audio)), 2, "each seed has its own random numbers")
        for goodput in audio:
            self.assertAlmostEqual(goodput / 160_000, 1, delta=0.3)
        again = cutline.run(scenario, seeds=2, results=None, progress=False, jobs=2)
        self.assertEqual(list(again.flows), list(results.flows))

    def test_python_and_rust_have_the_same_law(self):
        """The same controller in both languages gives the same rows."""
        table = {"limit": "200 packets", "a": 1.822e-4, "b": 1.816e-4}
        ours = small().with_({"dumbbell.queue": {"aqm": "py-pi", **table, "q-ref": "60 packets", "interval": "7812.5 us"}})
        theirs = small().with_({"dumbbell.queue": {"aqm": "pi", **table, "q-ref": "60 packets", "frequency": "128 Hz"}})
        rows = [[{**row, "run": "", "aqm": ""} for row in cutline.run(scenario, seeds=2, results=None, progress=False).queues]
                for scenario in (ours, theirs)]
        self.assertGreater(rows[0][0]["dropped_early"], 0)
        self.assertEqual(*rows)

    def test_tsq_works_over_it(self):
        scenario = small().with_({"dumbbell.queue": {"aqm": "py-ramp", "limit": "100 packets", "tsq": True}, "flow.audio.hint": 1})
        with_tsq, without = (cutline.run(one, seeds=2, results=None, progress=False)
                             for one in (scenario, scenario.with_({"dumbbell.queue.tsq": False})))
        delays = [[row["queuing_p95_ms"] for row in found.flows if row["group"] == "audio"] for found in (with_tsq, without)]
        self.assertLess(max(delays[0]), min(delays[1]) / 2)

    def test_a_queue_is_stepped_by_hand(self):
        queue = Ramp.queue("10 Mbit/s", limit="100 packets", low="0 packets", full="1 packets")
        self.assertEqual(queue.enqueue(0.0, "first", size=1000).kind, "pass")
        self.assertEqual(queue.enqueue(0.0, "second", size=1000).kind, "drop")

    def test_parameters_are_checked_as_all_others(self):
        for settings, said in (({"dumbbell.queue.full": "0 packets"}, "from 1 to 100000"), ({"dumbbell.queue.ful": 3}, "full"),
                               ({"flow.audio.app.pause": "20 s"}, "10 s"), ({"flow.bulk.transport.style": "wild"}, "careful")):
            with self.subTest(settings), self.assertRaisesRegex(cutline.ScenarioError, said):
                small().with_({**EXTENDED}).with_(settings).check()

    def test_results_of_other_code_are_other_results(self):
        first = """
            import cutline
            from cutline.extend import Law, register
            @register
            class Step(Law):
                name, title, source = "py-step", "Step", "a test"
                def arrive(self, now, packet, backlog):
                    return 0.1 * (backlog.packets > %d)
            cutline.run(cutline.Scenario.from_file("small.toml").with_({"dumbbell.queue": {"aqm": "py-step", "limit": "100 packets"}}),
                        seeds=1, resume=True, progress=False)
        """
        def run(threshold, name):
            with open(name, "w") as file:
                file.write(textwrap.dedent(first % threshold))
            return subprocess.run([sys.executable, name], capture_output=True, text=True, timeout=60)

        self.assertEqual(run(20, "a.py").returncode, 0)
        self.assertEqual(run(20, "b.py").returncode, 0)
        refused = run(30, "c.py").stderr
        self.assertRegex(refused, r"ResultsExist: (?s:.*)asked:  version \S+\+py-step:(?s:.*)they differ in the version")


class Failures(InFolder):
    def test_an_exception_ends_the_run_and_is_raised(self):
        class Boom(Exception):
            pass

        @register
        class Failing(Law):
            name, title, source = "py-failing", "Failing", "this test"

            def arrive(self, now, packet, backlog):
                if now > 1.0:
                    raise Boom("at", now)
                return 0.0

        scenario = small().with_({"dumbbell.queue": {"aqm": "py-failing", "limit": "100 packets"}, "duration": "20000 s"})
        started = time.monotonic()
        try:
            cutline.run(scenario, seeds=20, progress=False)
        except Boom as raised:
            self.assertEqual(raised.args[0], "at")
            self.assertIn("in a run of small.toml with seed", raised.__notes__[0])
            self.assertIn("arrive", [frame.name for frame in traceback.extract_tb(raised.__traceback__)])
        else:
            self.fail("nothing was raised")
        self.assertLess(time.monotonic() - started, 60)
        self.assertEqual(cutline.open("results/small").info["finished"], [])

    def test_exceptions_of_sources_and_controls(self):
        @register
        class Silent(Source):
            name, title, source = "py-silent", "Silent", "this test"

            def begin(self, now):
                self.deadline = now

            def write(self, now):
                return 100

        with self.assertRaisesRegex(cutline.ExtensionError, "py-silent.deadline is .* expected a later time"):
            cutline.run(small().with_({"flow.audio.app": {"kind": "py-silent"}}), seeds=1, results=None, progress=False)

        @register
        class Wordy(Halving):
            name = "py-wordy"

            def congested(self, window, flight):
                return "half"

        with self.assertRaisesRegex(cutline.ExtensionError, "py-wordy.congested returned half: expected a threshold in bytes"):
            cutline.run(small().with_({"flow.bulk.transport": {"protocol": "tcp", "congestion-control": "py-wordy"}}), seeds=1, results=None,
                        progress=False)

    def test_probabilities_are_from_0_to_1(self):
        for answer in (1.5, -0.1, math.nan, math.inf, "much", None):
            @register
            class Wrong(Law):
                name, title, source = "py-wrong", "Wrong", "this test"

                def arrive(self, now, packet, backlog, answer=answer):
                    return answer

            with self.subTest(answer), self.assertRaisesRegex(cutline.ExtensionError, "py-wrong.arrive returned .*: expected a probability"):
                cutline.run(small().with_({"dumbbell.queue": {"aqm": "py-wrong", "limit": "100 packets"}}), seeds=1, results=None,
                            progress=False)

    def test_an_exception_of_the_start_is_that_of_check(self):
        @register
        class Unwilling(Law):
            name, title, source = "py-unwilling", "Unwilling", "this test"

            def begin(self):
                raise LookupError("no start")

            def arrive(self, now, packet, backlog):
                return 0.0

        scenario = small().with_({"dumbbell.queue": {"aqm": "py-unwilling", "limit": "100 packets"}})
        with self.assertRaisesRegex(LookupError, "no start"):
            scenario.check()
        with self.assertRaisesRegex(LookupError, "no start"):
            Unwilling.queue("1 Mbit/s")

    def test_ctrl_c_ends_a_run_with_an_extension(self):
        scenario = small(duration="200000 s", interval="10 s").with_(EXTENDED)
        CALLED.clear()
        threading.Thread(target=lambda: CALLED.wait(60) and os.kill(os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        with self.assertRaises(cutline.Interrupted):
            cutline.run(scenario, seeds=1, progress=False)
        self.assertLess(time.monotonic() - started, 60)

    def test_descriptions_that_are_not_sound(self):
        def law(**attributes):
            return type("Law1", (Law,), {"name": "py-unsound", "title": "U", "source": "s", "arrive": lambda *_: 0.0, **attributes})

        count = {"source": "s", "doc": "d"}
        for attributes, parameter in (
                ({"name": "Not Kebab"}, "name"), ({"name": "pi"}, "name"), ({"title": ""}, "title"), ({"source": 3}, "source"),
                ({"n": Count(5, least=6, most=9, **count)}, "n"), ({"n": Count(-1, least=-2, most=9, **count)}, "n"),
                ({"x": Number(math.nan, least=0, most=1, **count)}, "x"), ({"x": Number(0, least=0, most=math.inf, **count)}, "x"),
                ({"x": Number("1", least=0, most=1, **count)}, "x"), ({"t": Time(0.1, least=-1, most=1, **count)}, "t"),
                ({"c": Choice("z", choices=["a", "b"], **count)}, "c"), ({"f": Flag(1, **count)}, "f"),
                ({"f": Flag(True, source="s", doc="")}, "f"), ({"moderate": {"y": 1}}, "moderate"),
                ({"limit": Count(5, least=1, most=9, **count)}, "name")):
            with self.subTest(attributes), self.assertRaises(cutline.ArgumentError) as why:
                register(law(**attributes))
            self.assertEqual(why.exception.parameter, parameter)
        for what in (3, Law, int, type("Source1", (Source,), {"name": "a", "title": "a", "source": "a"})):
            with self.subTest(what), self.assertRaises(cutline.ArgumentError):
                register(what)

    def test_a_cell_that_runs_again_replaces_the_class(self):
        def define(level, **more):
            return register(type("Again", (Law,), {"name": "py-again", "title": "A", "source": "s", "arrive": lambda *_: level, **more}))

        self.assertEqual(define(0.0).queue("1 Mbit/s").enqueue(0.0, 1, size=100).kind, "pass")
        self.assertEqual(define(1.0).queue("1 Mbit/s").enqueue(0.0, 1, size=100).kind, "drop")
        with self.assertRaisesRegex(cutline.ArgumentError, "other parameters"):
            define(1.0, n=Count(1, least=1, most=2, source="s", doc="d"))


if __name__ == "__main__":
    unittest.main()
