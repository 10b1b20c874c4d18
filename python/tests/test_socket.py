"""Two ends on the loopback interface."""

import asyncio
import errno
import json
import os
import queue
import select
import socket as plain
import struct
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import cutline
from cutline import socket
from cutline.socket import SOCK_DGRAM, SOCK_STREAM

# A peer that takes part has a minute: a thread of a busy machine may have no turn for seconds.
QUICK = {"negotiation.first-timeout": "20 ms", "negotiation.give-up": "60 s", "detection": "60 s",
         "monitor.interval": "20 ms"}
# For peers that take no part.
HASTY = {**QUICK, "negotiation.give-up": "500 ms", "detection": "200 ms"}
LOOPBACK = ("127.0.0.1", 0)


def pair(type, spec=None, key=None):
    """Two connected ends: the one that has asked, and the one that was accepted."""
    with socket.create_server(LOOPBACK, spec, type=type, options=QUICK, key=key) as server:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
        thread.start()
        connected = socket.create_connection(server.getsockname(), spec, type=type, options=QUICK, key=key, timeout=60)
        thread.join()
    accepted[0].settimeout(60)
    return connected, accepted[0]


class Blocking(unittest.TestCase):
    def test_messages_cross_and_are_measured(self):
        for type in (SOCK_STREAM, SOCK_DGRAM):
            ours, theirs = pair(type, {"send": {"size": "1000 B", "coerce": True}}, key=b"k" * 32)
            with ours, theirs:
                for number in range(20):
                    message = bytes([number]) * 500
                    ours.sendall(message)
                    got = b""
                    while len(got) < 500:
                        got += theirs.recv(500 - len(got))
                    self.assertEqual(got, message)
                self.assertTrue(ours.has_qos_peer and theirs.has_qos_peer)
                self.assertEqual([event.kind for event in ours.events(1)][:1], ["agreed"])
                mib = theirs.mib
                self.assertEqual((mib.receive.received.messages, mib.receive.received.lost), (20, 0))
                self.assertEqual(mib.receive.effective.size, 1000)
                self.assertIsNone(mib.send.effective.max_delay)
                self.assertEqual(mib.receive.violations["delay"], 0)
                self.assertEqual(mib.tcp.rtt is not None, type == SOCK_STREAM)
                self.assertEqual((mib.receive.offered.size, mib.receive.requested.size), (None, 1000))
                self.assertIn("size", mib.receive.coerced)
                self.assertGreaterEqual(mib.negotiation.received, 1)
                self.assertEqual((mib.negotiation.unauthenticated, mib.reports_refused), (0, 0))
                feedback = ours.mib
                self.assertGreater(feedback.send_buffer, 1000)
                self.assertGreaterEqual(feedback.send_buffer, feedback.send_queue)
                self.assertEqual((feedback.no_buffers, feedback.unreachable, feedback.residual_rate), (0, 0, None))
                ours.renegotiate({"send": {"size": "800 B", "coerce": True}})
                self.assertEqual(next(ours.events(10)).kind, "agreed")

    def test_the_region_of_operation_and_the_residual(self):
        # No two delays are the same.
        spec = {"send": {"min-rate": 1, "max-rate": 100, "size": "1000 B", "max-delay": "1 s", "jitter": "0 ms"}}
        ours, theirs = pair(SOCK_DGRAM, spec)
        with ours, theirs:
            until = time.monotonic() + 60
            while not theirs.mib.receive.violated or ours.mib.residual_rate is None:
                self.assertLess(time.monotonic(), until)
                ours.send(bytes(1000))
                theirs.recv(1000)
                # The pace of the sender.
                time.sleep(0.1)
            mib = theirs.mib
            rate, delay, jitter = (mib.receive.operation[measure] for measure in ("rate", "delay", "jitter"))
            self.assertEqual((rate.best, rate.worst, delay.worst, jitter.worst), (100, 1, 1000, 0))
            self.assertEqual(mib.receive.violated, {"jitter"})
            self.assertGreater(jitter.violated, 0)
            self.assertGreaterEqual(jitter.worst_measured, jitter.violated)
            self.assertLess(jitter.violated_since, mib.at)
            self.assertLessEqual(delay.best_measured, delay.worst_measured)
            self.assertIsNone(delay.violated_since)
            self.assertIsNone(mib.receive.operation["gap"].best)
            left = ours.mib
            self.assertAlmostEqual(left.residual_rate, 100 - left.last_sent.messages / left.last_sent.length, 2)
            self.assertAlmostEqual(left.residual_bps / 8000, left.residual_rate, 2)
            self.assertEqual(left.last_sent.bytes, 1000 * left.last_sent.messages)

    def test_deadlines_of_a_share_are_in_the_mib(self):
        ours, theirs = pair(SOCK_DGRAM)
        with ours, theirs:
            self.assertIsNone(ours.mib.scheduling, "there is no share")
            # As the native module has it with one; crates/endpoint/ffi/tests/deadlines.rs has a manager.
            found = json.loads(ours._native.mib())
            self.assertEqual(found["scheduling"], {"sent": -1, "missed": -1, "latest_ns": -1})
            found["scheduling"] = {"sent": 9, "missed": 2, "latest_ns": 3_000_000}
            self.assertEqual(vars(socket._mib(found).scheduling), {"sent": 9, "missed": 2, "latest": 0.003})

    def test_datagrams_that_are_fair_to_tcp(self):
        spec = {"send": {"min-rate": 1, "max-rate": 1000, "size": "1000 B", "coerce": True}}
        options = QUICK | {"rate-control": "tfrc", "tfrc.gradual-increase": True, "tfrc.t-mbi": "30 s"}
        with socket.create_server(LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            accepted = []
            thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
            thread.start()
            ours = socket.create_connection(server.getsockname(), spec, type=SOCK_DGRAM, options=options, timeout=60)
            thread.join()
        theirs = accepted[0]
        theirs.settimeout(60)
        with ours, theirs:
            until = time.monotonic() + 60
            while not ours.mib.tfrc.feedback or ours.mib.residual_rate is None:
                self.assertLess(time.monotonic(), until)
                ours.send(bytes(1000))
                theirs.recv(1000)
            tfrc = ours.mib.tfrc
            self.assertGreater(tfrc.rate_bps, 0)
            self.assertLess(tfrc.rtt, 1)
            self.assertEqual((tfrc.loss_event_rate, tfrc.refused), (0, 0))
            # The end that receives is not controlled.
            tfrc = theirs.mib.tfrc
            self.assertEqual((tfrc.rate_bps, tfrc.rtt, tfrc.loss_event_rate, tfrc.feedback), (None,) * 4)

    def test_a_handler_is_called_with_each_event(self):
        ours, theirs = pair(SOCK_DGRAM)
        seen, raised = queue.Queue(), queue.Queue()
        hook, sys.unraisablehook = sys.unraisablehook, raised.put

        def handler(event):
            seen.put((event.kind, ours.has_qos_peer))
            raise ValueError("on purpose")

        try:
            with ours, theirs:
                ours.on_event(handler)
                self.assertEqual(seen.get(timeout=60), ("agreed", True))
                self.assertIs(raised.get(timeout=60).exc_type, ValueError)
                theirs.renegotiate({"receive": {"size": "800 B", "coerce": True}})
                self.assertEqual(seen.get(timeout=60)[0], "agreed")
                self.assertEqual([event.kind for event in ours.events()], ["agreed", "agreed"])
                ours.on_event(None)
        finally:
            sys.unraisablehook = hook

    def test_a_timeout_and_a_call_that_does_not_wait(self):
        ours, theirs = pair(SOCK_DGRAM)
        ours.settimeout(0.05)
        with self.assertRaises(TimeoutError):
            ours.recv(100)
        ours.setblocking(False)
        ours.settimeout(0)
        with self.assertRaises(BlockingIOError):
            ours.recv(100)
        self.assertFalse(ours.pending)
        theirs.send(b"now")
        self.assertTrue(select.select([ours], [], [], 60)[0])
        self.assertEqual(ours.recv(100), b"now")
        ours.close()
        self.assertEqual(ours.fileno(), -1)
        with self.assertRaises(OSError):
            ours.recv(1)

    def test_other_threads_run_while_a_call_waits(self):
        ours, theirs = pair(SOCK_STREAM)
        threading.Timer(0.1, lambda: theirs.sendall(b"at last")).start()
        self.assertEqual(ours.recv(100), b"at last")

    def test_a_plain_peer(self):
        with plain.create_server(LOOPBACK) as server:
            with socket.create_connection(server.getsockname(), "web", options=HASTY) as ours:
                theirs, _ = server.accept()
                with ours.makefile("rwb") as file, theirs:
                    file.write(b"GET /\n")
                    file.flush()
                    self.assertEqual(theirs.recv(100), b"GET /\n")
                    theirs.sendall(b"one\ntwo\n")
                    self.assertEqual([file.readline(), file.readline()], [b"one\n", b"two\n"])
                self.assertFalse(ours.has_qos_peer)

    def test_errors_name_the_allowed_values(self):
        refused = ("127.0.0.1", 1)
        for spec, options, expected in [
            ("vidoe", {}, '"video"'),
            (None, {"send.max-dely": "1 s"}, 'did you mean "max-delay"?'),
            (None, {"send.loss": 101}, "from 0 to 100"),
            (None, {"tfrc.q": 1}, '"tfrc.q": value 1 is not allowed: expected a number such as 0.05, or a percentage such as "5 %", from 0 to 0.999999'),
            ({"send": {"min-rate": 5, "max-rate": 4}}, {}, "at most max-rate, which is 4"),
            ("[send]\nloss = 'many'\n", {}, "options:2:8"),
        ]:
            with self.assertRaisesRegex(cutline.OptionError, expected.replace("?", r"\?")):
                socket.create_connection(refused, spec, options=options)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(refused, options={"peer": "plain"})
        with self.assertRaisesRegex(ValueError, "SOCK_DGRAM"):
            socket.create_connection(refused, type=plain.SOCK_RAW)
        with plain.create_server(LOOPBACK) as server, self.assertRaises(cutline.NoPeer):
            socket.create_connection(server.getsockname(), key=b"k" * 32, options=HASTY)

    def test_a_connection_that_breaks_is_made_again(self):
        options = {**QUICK, "reconnect": True}
        with socket.create_server(LOOPBACK, options=QUICK) as server:
            address = server.getsockname()
            with self.assertRaisesRegex(cutline.OptionError, "recovery time"):
                socket.create_connection(address, options=options)
            with self.assertRaisesRegex(cutline.OptionError, "only the end that connects"):
                socket.create_server(LOOPBACK, {"send": {"recovery": "10 s"}}, options=options)
            accepted = queue.Queue()
            is_over = threading.Event()
            server.setblocking(False)

            def accept():
                while not is_over.is_set():
                    select.select([server], [], [], 0.02)
                    try:
                        accepted.put(server.accept()[0])
                    except BlockingIOError:
                        pass

            accepts = threading.Thread(target=accept)
            accepts.start()
            spec = {"send": {"recovery": "60 s", "coerce": True}}
            try:
                with socket.create_connection(address, spec, options=options, timeout=60) as connection:
                    connection.sendall(b"unread")
                    first = accepted.get(timeout=60)
                    # No event shows that the message is in the kernel's buffer.
                    time.sleep(0.1)
                    # Without a linger time the kernel resets the connection.
                    with plain.socket(fileno=os.dup(first.fileno())) as same:
                        same.setsockopt(plain.SOL_SOCKET, plain.SO_LINGER, struct.pack("ii", 1, 0))
                    first.close()
                    kinds = {}
                    for event in connection.events(timeout=60):
                        kinds[event.kind] = event
                        if event.kind == "recovered":
                            break
                    self.assertEqual((kinds["lost"].sent, kinds["lost"].reported), (1, 0))
                    self.assertTrue(kinds["recovered"].is_new and 0 <= kinds["recovered"].after < 60)
                    with self.assertRaises(cutline.Lost):
                        connection.send(b"again")
                    connection.sendall(b"again")
                    # On a busy machine attempts may have been given up, whose connections end without a byte.
                    data = b""
                    while data != b"again":
                        with accepted.get(timeout=60) as again:
                            again.settimeout(60)
                            try:
                                data = again.recv(10)
                            except (ConnectionError, cutline.Error):
                                data = b""
                    self.assertEqual(connection.mib.reconnections, 1)
            finally:
                is_over.set()
                accepts.join()

    def test_ends_that_do_not_agree(self):
        stubborn = {"receive": {"max-delay": "10 ms"}}
        with socket.create_server(LOOPBACK, stubborn, type=SOCK_DGRAM, options=QUICK) as server:
            server.setblocking(False)
            is_over = threading.Event()

            def answer():
                while not is_over.is_set():
                    select.select([server], [], [], 0.02)
                    try:
                        server.accept()
                    except BlockingIOError:
                        pass

            thread = threading.Thread(target=answer)
            thread.start()
            try:
                with self.assertRaisesRegex(cutline.Refused, "max-delay"):
                    socket.create_connection(server.getsockname(), {"send": {"max-delay": "20 ms"}}, type=SOCK_DGRAM,
                                             options=QUICK)
            finally:
                is_over.set()
                thread.join()


class Agent:
    """In the place of cutlined: a local socket where `answer(request)` says what replies a request gets."""

    def __init__(self, answer):
        self._folder, self._answer = tempfile.TemporaryDirectory(), answer
        self.path = os.path.join(self._folder.name, "cutlined.sock")
        self._listener = plain.socket(plain.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("r") as lines:
            for line in lines:
                request = json.loads(line)
                is_first = request["request"] == "hello"
                for reply in [{"reply": "welcome", "version": 1}] if is_first else self._answer(request):
                    client.sendall(json.dumps(reply).encode() + b"\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        self._folder.cleanup()


class Reservations(unittest.TestCase):
    BUCKET = {"rate_bps": 500_000, "bucket_bytes": 3000, "peak_bps": 1_000_000, "min_policed_bytes": 64,
              "max_packet_bytes": 1500}
    REFUSAL = {"reason": "bandwidth", "node": "10.0.0.1", "available_bps": 400_000}
    TEXT = "the bandwidth is not available at 10.0.0.1; 400 kbit/s would be granted"

    def connect(self, agent, **more):
        options = QUICK | {"service": "rsvp", "service-socket": agent.path, "reservation-patience": "60 s"}
        options |= {name.replace("_", "-"): value for name, value in more.items()}
        with socket.create_server(LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            accepted = []
            thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
            thread.start()
            try:
                ours = socket.create_connection(server.getsockname(), "video", type=SOCK_DGRAM, options=options)
                self.addCleanup(ours.close)
                return ours
            finally:
                thread.join()
                accepted[0].close()

    def test_a_reservation_is_in_the_mib_and_an_event(self):
        def answer(request):
            if request["request"] == "announce":
                return [{"reply": "reserved", "id": request["id"], "bucket": self.BUCKET}]
            return [{"reply": "confirmed", "id": request["id"], "node": "10.0.0.1"}]

        with Agent(answer) as agent:
            ours = self.connect(agent, if_refused="fail")
            found = ours.mib.reservation
            self.assertEqual((found.service, found.send.state, found.receive.state),
                             ("rsvp", "reserved", "reserved"))
            self.assertEqual(vars(found.send.reserved), self.BUCKET)
            self.assertGreater(found.send.requested.rate_bps, 500_000)
            self.assertEqual(found.receive.reserved, found.receive.requested)
            self.assertIsNone(found.send.refusal)
            events = list(ours.reservation_events())
            self.assertEqual([(event.kind, event.direction) for event in events],
                             [("granted", "send"), ("granted", "receive"), ("confirmed", "receive")])
            self.assertEqual((vars(events[0].reserved), events[0].refusal), (self.BUCKET, None))
            self.assertEqual((events[2].node, events[2].reserved), ("10.0.0.1", None))
            self.assertEqual(list(ours.reservation_events()), [])

    def test_a_refusal_has_reason_and_available_rate(self):
        def answer(request):
            is_refused = request["request"] == "reserve"
            return [{"reply": "failed", "id": request["id"], "refusal": self.REFUSAL, "in_place": False}] if is_refused else []

        with Agent(answer) as agent:
            with self.assertRaisesRegex(cutline.Refused, self.TEXT):
                self.connect(agent, if_refused="fail")
            ours = self.connect(agent, if_refused="best-effort")
            found = ours.mib.reservation.receive
            self.assertEqual((found.state, found.reserved), ("failed", None))
            self.assertEqual(vars(found.refusal), self.REFUSAL | {"text": self.TEXT})
            lost = [event for event in ours.reservation_events() if event.direction == "receive"]
            self.assertEqual([(event.kind, event.reserved, event.refusal) for event in lost],
                             [("lost", None, found.refusal)])

    def test_a_missing_answer_is_a_reason(self):
        with Agent(lambda _: []) as agent:
            with self.assertRaisesRegex(cutline.Refused, "there was no answer in time"):
                self.connect(agent, if_refused="fail", reservation_patience="200 ms")
            ours = self.connect(agent, reservation_patience="200 ms")
            refusal = ours.mib.reservation.send.refusal
            self.assertEqual((refusal.reason, refusal.available_bps, refusal.node), ("unanswered", None, None))
        ours = self.connect(agent)
        self.assertEqual(ours.mib.reservation.send.refusal.reason, "no-agent", "it is gone")

    def test_options_of_reservations_need_a_service(self):
        with self.assertRaisesRegex(cutline.OptionError, "if-refused.*unless service or allocation is set"):
            socket.create_connection(("127.0.0.1", 1), options={"if-refused": "fail"})
        ours, theirs = pair(SOCK_DGRAM)
        with ours, theirs:
            self.assertIsNone(ours.mib.reservation)
            self.assertEqual(list(ours.reservation_events()), [])


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_streams_with_more_than_buffers_hold(self):
        async def echo(reader, writer):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()

        data = bytes(range(256)) * 20_000
        async with await socket.start_server(echo, LOOPBACK, "file", options=QUICK) as server:
            reader, writer = await socket.open_connection(server.getsockname(), "file", options=QUICK)
            writer.write(data)
            writer.write_eof()
            got = await asyncio.wait_for(reader.read(-1), 60)
            self.assertTrue(got == data, f"{len(got)} of {len(data)} bytes")
            connection = writer.get_extra_info("connection")
            self.assertTrue(connection.has_qos_peer)
            self.assertEqual(connection.mib.receive.received.bytes, len(data))
            writer.close()
            await writer.wait_closed()

    async def test_a_datagram_protocol(self):
        class Collect(asyncio.DatagramProtocol):
            def __init__(self):
                self.got = asyncio.Queue()
                self.errors = []

            def error_received(self, exc):
                self.errors.append(exc.errno)

            def datagram_received(self, data, addr):
                self.got.put_nowait(data)

        with socket.create_server(LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            accepted = asyncio.create_task(asyncio.to_thread(server.accept))
            transport, protocol = await socket.create_endpoint(
                Collect, server.getsockname(), type=SOCK_DGRAM, options=QUICK)
            theirs, _ = await accepted
            theirs.settimeout(60)
            for number in range(5):
                transport.sendto(bytes([number]))
                self.assertEqual(await asyncio.to_thread(theirs.recv, 10), bytes([number]))
                theirs.send(b"answer")
                self.assertEqual(await asyncio.wait_for(protocol.got.get(), 60), b"answer")
            # A datagram that the interface's queue has no room for is lost, and the next one is sent.
            with mock.patch.object(transport._connection, "send", side_effect=OSError(errno.ENOBUFS, "no room")):
                transport.sendto(b"lost")
            self.assertEqual((protocol.errors, transport.get_write_buffer_size()), ([errno.ENOBUFS], 0))
            transport.sendto(b"next")
            self.assertEqual(await asyncio.to_thread(theirs.recv, 10), b"next")
            transport.close()


if __name__ == "__main__":
    unittest.main()
