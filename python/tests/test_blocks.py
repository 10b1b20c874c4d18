"""Building blocks: queues that are stepped by hand, quality functions, translation."""

import heapq
import importlib.util
import math
import os
import subprocess
import unittest
from dataclasses import replace
from pathlib import Path

import cutline
from cutline import aqm, quality, tfrc

REPOSITORY = Path(__file__).parents[2]


class Queues(unittest.TestCase):
    def test_every_aqm_has_a_class_with_its_parameters(self):
        added = {extension.name for extension in cutline.extend.registered()}
        self.assertEqual(set(aqm.classes), {name for name, *_ in cutline._native.aqms()} - added)
        for name, made in aqm.classes.items():
            with self.subTest(name):
                queue = made("10 Mbit/s", limit="200 packets")
                self.assertTrue(all(queue.enqueue(0.0, number, size=1500) for number in range(3)))
                self.assertEqual((len(queue), queue.backlog_bytes), (3, 4500))
                self.assertEqual([queue.dequeue(0.001 * number).packet for number in range(1, 4)], [0, 1, 2])
                self.assertIsNone(queue.dequeue(0.01))
                self.assertEqual((queue.stats["arrived"], queue.stats["dequeued"]), ((3, 4500), (3, 4500)))
                for parameter in made.parameters():
                    self.assertIn(f"{parameter.argument}: ", made.__doc__)

    def test_the_classes_are_those_of_the_registry(self):
        file = importlib.util.spec_from_file_location("generate", REPOSITORY / "python/tools/generate_aqms.py")
        generate = importlib.util.module_from_spec(file)
        file.loader.exec_module(generate)
        self.assertEqual(generate.FILE.read_text(), generate.text(), "python python/tools/generate_aqms.py writes the file")
        self.assertEqual(generate.TFRC_FILE.read_text(), generate.tfrc_text(), "python python/tools/generate_aqms.py writes the file")

    def test_tsq_lets_low_hints_cut_in_line(self):
        queue = aqm.Pi("10 Mbit/s", limit="400 packets", tsq={"l": "40 ms"})
        for number in range(50):
            queue.enqueue(0.0, number, size=1500, hint=16)
        queue.enqueue(0.0, "call", size=160, hint=1)
        order = [queue.dequeue(0.0012 * turn).packet for turn in range(51)]
        # TSQ eq. 2: with 60 ms in front of it, hint 1 weighs 3.75 ms; packet n of hint 16 weighs 1.2 n ms.
        self.assertEqual(order[:6], [0, 1, 2, 3, "call", 4])

    def test_tsq_takes_its_parameters(self):
        self.assertIn("l", [parameter.name for parameter in aqm.tsq_parameters()])
        for parameter in aqm.tsq_parameters():
            if parameter.kind == "number" and "off" not in parameter.default:
                aqm.Pi("10 Mbit/s", tsq={parameter.argument: float(parameter.default)})

    def test_a_full_queue_drops_with_the_reason(self):
        queue = aqm.DropTail(10_000_000, limit="2 packets")
        verdicts = [queue.enqueue(0.0, n) for n in range(3)]
        self.assertEqual([(verdict.kind, verdict.reason, bool(verdict)) for verdict in verdicts],
                         [("pass", None, True), ("pass", None, True), ("drop", "overflow", False)])
        self.assertEqual((queue.stats["dropped_full"], queue.probability or 0.0), ((1, 1500), 0.0))

    def test_packets_that_are_dropped_later_are_shed(self):
        queue = aqm.CoDel("1 Mbit/s", limit="1000 packets", target="5 ms", interval="100 ms")
        now, left, shed = 0.0, [], []
        for number in range(2000):
            queue.enqueue(now, number, size=1500)
            if number % 2:
                found = queue.dequeue(now)
                left.append(found.packet)
            shed += [one.packet for one in queue.shed()]
            now += 0.006
        self.assertGreater(len(shed), 3)
        self.assertEqual(sorted(left + shed), sorted(set(left + shed)))
        self.assertEqual(len(left) + len(shed) + len(queue), 2000)
        self.assertEqual(len(queue._packets), len(queue), "packets that are gone are forgotten")

    def test_the_same_seed_gives_the_same_verdicts(self):
        def verdicts(seed):
            queue = aqm.Red("10 Mbit/s", limit="100 packets", seed=seed, min_th="5 packets", max_th="20 packets")
            return [queue.enqueue(0.001 * n, n).kind for n in range(200) if n % 3 or queue.dequeue(0.001 * n) or True]

        self.assertEqual(verdicts(1), verdicts(1))
        self.assertNotEqual(verdicts(1), verdicts(2))

    def test_marks_need_packets_that_may_be_marked(self):
        queue = aqm.Pi2("1 Mbit/s", limit="500 packets")
        kinds = {ecn: {queue.enqueue(0.01 * n, n, ecn=ecn).kind for n in range(400)} for ecn in (True,)}
        self.assertIn("mark", kinds[True])
        self.assertGreater(queue.probability, 0)

    def test_errors_of_values_name_the_allowed_ones(self):
        for call, parameter, parts in [
            (lambda: aqm.Pi("10 Mbit"), "rate", ["10 Mbit"]),
            (lambda: aqm.Pi(0), "rate", ["expected a rate"]),
            (lambda: aqm.Pi(float("nan")), "rate", ["nan"]),
            (lambda: aqm.Pi("10 Mbit/s", limit="fast"), "limit", ["fast", "expected"]),
            (lambda: aqm.Pi("10 Mbit/s", q_ref=-1), "q_ref", ['"q-ref"', "-1", "expected"]),
            (lambda: aqm.Pi("10 Mbit/s", a=float("nan")), "parameters", ["nan", "a finite number"]),
            (lambda: aqm.Pi("10 Mbit/s", tsq={"l": "x"}), "tsq.l", ["expected"]),
            (lambda: aqm.Pi("10 Mbit/s", seed=-1), "seed", ["-1"]),
            (lambda: aqm.Queue("10 Mbit/s"), "name", ["choose the class"]),
        ]:
            with self.subTest(parameter, parts=parts), self.assertRaises(cutline.ArgumentError) as why:
                call()
            self.assertEqual(why.exception.parameter, parameter, why.exception)
            for part in parts:
                self.assertIn(part, str(why.exception))
        with self.assertRaises(TypeError):
            aqm.Pi("10 Mbit/s", qref=3)
        queue = aqm.Pi("10 Mbit/s")
        queue.enqueue(1.0)
        for words, more in [((0.5,), {}), ((float("nan"),), {}), ((-1,), {}), (("x",), {}), ((2.0,), {"size": 0}), ((2.0,), {"hint": 0}),
                            ((2.0,), {"flow": -1}), ((2.0,), {"size": 1.5})]:
            with self.subTest(words, more=more), self.assertRaises(cutline.ArgumentError):
                queue.enqueue(*words, **more)
        self.assertEqual(len(queue), 1, "a refused call changes nothing")


class Quality(unittest.TestCase):
    def test_the_paper_s_worked_values(self):
        # TSQ section 2.1: 0.98 at 150 ms, 0.692 at 300 ms; 0.83 at 64 kbit/s.
        self.assertAlmostEqual(quality.delay_quality("audio", 0.15), 0.98, 4)
        self.assertAlmostEqual(quality.quality("audio", 0.3, 64_000), 0.692, 9)
        self.assertAlmostEqual(quality.quality("audio", 0.15, 64_000), 0.83, 3)
        self.assertAlmostEqual(quality.throughput_quality("file", 1_000_000, size_kbit=2000), 0.5, 9)
        # RED-Worcester section 3.
        self.assertAlmostEqual(quality.power(0.5, 1e6, 0.01), 10_000, 6)

    def test_lists_give_lists(self):
        found = quality.delay_quality("audio", [0.15, 0.3])
        self.assertEqual(found, [quality.delay_quality("audio", 0.15), quality.delay_quality("audio", 0.3)])
        self.assertEqual(quality.quality("audio", [0.1, 0.2], 64_000), [quality.quality("audio", d, 64_000) for d in (0.1, 0.2)])
        self.assertEqual(quality.delay_quality("audio", []), [])

    def test_arrays_give_arrays_and_are_broadcast(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        delays, rates = numpy.linspace(0, 0.6, 7), numpy.array([[8_000.0], [64_000.0]])
        found = quality.quality("audio", delays, rates)
        self.assertEqual((found.shape, found.dtype), ((2, 7), float))
        self.assertEqual(found[1, 3], quality.quality("audio", float(delays[3]), 64_000))
        self.assertEqual(quality.delay_quality("audio", delays[::2]).tolist(), quality.delay_quality("audio", delays[::2].tolist()))
        self.assertEqual(quality.delay_quality("audio", numpy.array([0, 1])).tolist(), [1.0, 0.0])
        self.assertEqual(quality.delay_quality("audio", numpy.float64(0.0)), 1.0)
        self.assertEqual(quality.delay_quality("audio", numpy.array([])).shape, (0,))

    def test_wrong_values_are_named(self):
        for call, parameter in [
            (lambda: quality.quality("vidoe", 0.1, 1), "application"), (lambda: quality.quality("audio", 0.1, 1, combination="max"), "combination"),
            (lambda: quality.quality("audio", 0.1, 1, size_kbit=3), "size_kbit"), (lambda: quality.quality("file", 0.1, 1, size_kbit=0), "size_kbit"),
            (lambda: quality.delay_quality("audio", -1), "delay_s"), (lambda: quality.delay_quality("audio", math.nan), "delay_s"),
            (lambda: quality.delay_quality("audio", "x"), "delay_s"), (lambda: quality.delay_quality("audio", None), "delay_s"),
            (lambda: quality.quality("audio", [1, 2], [1]), "delay_s"), (lambda: quality.power(2, 1, 1), "alpha"),
            (lambda: quality.power("x", 1, 1), "alpha"),
        ]:
            with self.subTest(parameter), self.assertRaises(cutline.ArgumentError) as why:
                call()
            self.assertEqual(why.exception.parameter, parameter, why.exception)
        self.assertEqual(quality.delay_quality("audio", math.inf), 0.0)


class RateControl(unittest.TestCase):
    def test_the_equation(self):
        # RFC 5348 section 3.1: s = 1000 B, R = 100 ms, p = 0.01 give 112,332 B/s.
        self.assertAlmostEqual(tfrc.throughput(1000, 0.1, 0.01) / 8, 112_332, delta=1)
        rates = [1e-6, 0.003, 0.4, 1.0]
        throughputs = tfrc.throughput(1000, 0.1, rates)
        self.assertEqual(throughputs, sorted(throughputs, reverse=True))
        for rate, found in zip(rates, tfrc.loss_event_rate(1000, 0.1, throughputs)):
            self.assertAlmostEqual(found / rate, 1, places=6)
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        surface = tfrc.throughput(1000, numpy.array([[0.05], [0.1]]), numpy.array(rates))
        self.assertEqual((surface.shape, surface[1].tolist()), ((2, 4), throughputs))

    def test_invalid_values_of_the_equation_are_refused(self):
        for parameter, call in (("segment_bytes", (0, 0.1, 0.01)), ("rtt_s", (1000, 0, 0.01)), ("rtt_s", (1000, -1, 0.01)),
                                ("loss_event_rate", (1000, 0.1, 1.5)), ("loss_event_rate", (1000, 0.1, 0)),
                                ("loss_event_rate", (1000, 0.1, math.nan)), ("rtt_s", (1000, math.inf, 0.01)), ("rtt_s", (1000, "x", 0.01))):
            with self.subTest(call), self.assertRaisesRegex(cutline.ArgumentError, f"{parameter}: .*expected") as why:
                tfrc.throughput(*call)
            self.assertEqual(why.exception.parameter, parameter)

    def carried(self, seconds, lost, **parameters):
        """Carries packets and reports with 50 ms each way for so long, without the packets that `lost` says. Returns both ends."""
        sender, receiver = tfrc.Sender(**parameters), tfrc.Receiver(**parameters)
        sender.supply()
        events = []
        due = lambda: [at for at in (sender.deadline, receiver.deadline, events[0][0] if events else None) if at is not None]
        now, turn = 0.0, 0
        while now < seconds:
            while events and events[0][0] <= now:
                _, _, is_report, found = heapq.heappop(events)
                report = None if is_report else receiver.receive(now, found)
                if is_report:
                    sender.feedback(now, found)
                elif report:
                    heapq.heappush(events, (now + 0.05, turn := turn + 1, True, report))
            if report := receiver.advance(now):
                heapq.heappush(events, (now + 0.05, turn := turn + 1, True, report))
            while packet := sender.transmit(now):
                if not lost(packet.seq):
                    heapq.heappush(events, (now + 0.05, turn := turn + 1, False, packet))
            now = max(min(due()), now)
        return sender, receiver

    def test_a_flow_without_loss_doubles_its_rate(self):
        sender, receiver = self.carried(0.55, lambda seq: False)
        self.assertAlmostEqual(sender.rtt_s, 0.1, places=3)
        self.assertEqual((sender.loss_event_rate, receiver.loss_event_rate), (0.0, 0.0))
        # RFC 5348 section 4.2: four packets of 1000 B in a round trip of 100 ms; section 4.3: while there is no loss, the rate doubles.
        first, _ = self.carried(0.15, lambda seq: False)
        self.assertAlmostEqual(first.rate_bps, 320_000, delta=1)
        self.assertGreaterEqual(sender.rate_bps, 4 * 320_000 - 1)
        self.assertGreater(receiver.stats["packets"], first.stats["packets"])

    def test_with_loss_the_sender_has_the_rate_of_the_equation(self):
        sender, receiver = self.carried(60.0, lambda seq: seq % 100 == 99, reduce_oscillation=False)
        self.assertAlmostEqual(sender.loss_event_rate, 0.01, delta=0.001)
        expected = tfrc.throughput(1000, sender.rtt_s, sender.loss_event_rate)
        self.assertAlmostEqual(sender.rate_bps / expected, 1, delta=0.02)
        # Losses behind the newest packets are not known yet.
        lost = receiver.stats["lost"]
        self.assertTrue(abs(lost - sender.stats["packets"] / 100) <= 1, (lost, sender.stats))

    def test_without_reports_the_rate_falls(self):
        sender = tfrc.Sender()
        sender.supply()
        sender.transmit(0.0)
        sender.feedback(0.1, tfrc.Feedback(0.0, 0.0, 0.0, 0.0))
        before = sender.rate_bps
        while sender.stats["nofeedback"] < 3:
            sender.transmit(sender.deadline)
        self.assertLess(sender.rate_bps, before)
        sender.supply(False)
        self.assertEqual(len(sender), 0)

    def test_messages_wait_in_a_bounded_buffer(self):
        sender = tfrc.Sender(packet_size=500, send_buffer="3 packets")
        self.assertTrue(sender.write(1500))
        self.assertFalse(sender.write(500))
        self.assertEqual((len(sender), sender.stats["dropped_at_sender"], sender.transmit(0.0).size), (3, 1, 500))
        unbounded = tfrc.Sender(packet_size="500 B", send_buffer=False)
        self.assertTrue(unbounded.write(500_000))
        self.assertEqual(len(unbounded), 1000)

    def test_wrong_arguments_are_named(self):
        packet, report = tfrc.Packet(0, 0.0, 0.0, 1000), tfrc.Feedback(0.0, 0.0, 8000.0, 0.0)
        receiver, sender = tfrc.Receiver(), tfrc.Sender()
        later = tfrc.Sender()
        later.transmit(2.0)
        for parameter, call in (
                ("q", lambda: tfrc.Sender(q=1.0)), ("packet_size", lambda: tfrc.Sender(packet_size=0)), ("q", lambda: tfrc.Receiver(q=math.nan)),
                ("paket_size", lambda: tfrc.Sender(paket_size=3)), ("size", lambda: sender.write(0)), ("size", lambda: sender.write(1.5)),
                ("now", lambda: sender.transmit(-1)), ("now", lambda: sender.transmit(math.nan)), ("now", lambda: later.transmit(1.0)),
                ("packet", lambda: receiver.receive(0.0, 3)), ("report", lambda: sender.feedback(0.0, None)),
                ("seq", lambda: receiver.receive(0.0, replace(packet, seq=-1))), ("size", lambda: receiver.receive(0.0, replace(packet, size=0))),
                ("sent_s", lambda: receiver.receive(0.0, replace(packet, sent_s=math.inf))),
                ("rtt_s", lambda: receiver.receive(0.0, replace(packet, rtt_s=-0.1))),
                ("loss_event_rate", lambda: sender.feedback(0.0, replace(report, loss_event_rate=1.1))),
                ("received_bps", lambda: sender.feedback(0.0, replace(report, received_bps=math.nan))),
                ("delay_s", lambda: sender.feedback(0.0, replace(report, delay_s="x")))):
            with self.subTest(parameter), self.assertRaises(cutline.ArgumentError) as why:
                call()
            self.assertEqual(why.exception.parameter, parameter)

    def test_the_parameters_are_those_of_the_system(self):
        names = {parameter.argument for parameter in tfrc.parameters()}
        self.assertEqual(names, set(tfrc.Parameters.__annotations__))
        for parameter in tfrc.parameters():
            self.assertIn(f"{parameter.argument}: ", tfrc.Parameters.__doc__)


class Translation(unittest.TestCase):
    def test_a_class_becomes_settings_with_reasons(self):
        found = cutline.translate("audio", rtt=0.3)
        self.assertEqual((found.protocol, found.service, found.hint, found.dscp), ("udp", "hint", 6, (6 - 1) << 2 | 3))
        self.assertTrue(all(decision.reason for decision in found.decisions))
        self.assertIn("udp; hint", str(found))
        self.assertEqual(cutline.translate("audio", rtt="300 ms"), found)
        self.assertEqual(cutline.translate("video", {"bit-rate": "4 Mbit/s", "interactive": False}, protocol="tcp").protocol, "tcp")
        with self.assertRaisesRegex(KeyError, "there are: "):
            found["nosuch"]

    def test_a_mapping_is_a_specification(self):
        found = cutline.translate({"send": {"max-delay": "50 ms"}}, service="best-effort")
        self.assertEqual(found.service, "best-effort")

    def test_wrong_values_are_named(self):
        for call, parameter in [
            (lambda: cutline.translate("vidoe"), "application"), (lambda: cutline.translate(3), "application"),
            (lambda: cutline.translate("video", {"bitrate": "4 Mbit/s"}), "bitrate"),
            (lambda: cutline.translate("video", {"bit-rate": "fast"}), "bit_rate"),
            (lambda: cutline.translate("audio", protocol="sctp"), "protocol"), (lambda: cutline.translate("audio", service="x"), "service"),
            (lambda: cutline.translate("audio", rtt="fast"), "rtt"), (lambda: cutline.translate("audio", rtt=-1), "rtt"),
            (lambda: cutline.translate("audio", rate="x"), "rate"), (lambda: cutline.translate("audio", loss=math.nan), "loss"),
            (lambda: cutline.translate("audio", mtu=1), "mtu"),
            (lambda: cutline.translate({"send": {"max-dleay": "5 ms"}}), "send.max_dleay"),
            (lambda: cutline.translate({"send": {}}, {"a": 1}), "settings"),
        ]:
            with self.subTest(parameter), self.assertRaises(cutline.ArgumentError) as why:
                call()
            self.assertEqual(why.exception.parameter, parameter, why.exception)

    @unittest.skipIf(not os.environ.get("CUTLINE_COMMAND"), "CUTLINE_COMMAND is not set")
    def test_the_hint_is_that_of_the_command(self):
        import json

        said = subprocess.run([os.environ["CUTLINE_COMMAND"], "translate", "game", "--json"], capture_output=True, check=True).stdout
        self.assertEqual(json.loads(said)["network"]["hint"], cutline.translate("game").hint)


if __name__ == "__main__":
    unittest.main()
