"""Datagrams in frames below IP: on the loopback interface, and over a link between two network namespaces."""

import asyncio
import errno
import select
import shutil
import socket as plain
import subprocess
import sys
import textwrap
import threading
import unittest

import cutline
from cutline import socket
from cutline.socket import SOCK_DGRAM, SOCK_STREAM

# A peer that takes part has a minute: a thread of a busy machine may have no turn for seconds.
QUICK = {"negotiation.first-timeout": "20 ms", "negotiation.give-up": "60 s", "detection": "60 s",
         "monitor.interval": "20 ms"}
BLOCKS = {"send": {"size": "66000 B", "coerce": True}, "receive": {"size": "66000 B", "coerce": True}}
LOOPBACK = ("direct:lo", 0)
NO_LINK = "direct:lo/00:00:00:00:00:00"


def refusal():
    """The reason for which this process has no sockets for frames; None if it has."""
    try:
        plain.socket(plain.AF_PACKET, SOCK_DGRAM, 0).close()
    except OSError as error:
        return f"no packet sockets: {error}; run the tests as root"


def pair(spec=None):
    with socket.create_server(LOOPBACK, spec, type=SOCK_DGRAM, options=QUICK) as server:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.extend(server.accept()))
        thread.start()
        connected = socket.create_connection(server.getsockname(), spec, type=SOCK_DGRAM, options=QUICK, timeout=60)
        thread.join()
        assert accepted[1] == connected.getsockname()
    accepted[0].settimeout(60)
    return connected, accepted[0]


@unittest.skipIf(refusal(), refusal())
class Blocking(unittest.TestCase):
    def test_messages_cross_and_are_measured(self):
        ours, theirs = pair(BLOCKS)
        with ours, theirs:
            self.assertTrue(ours.has_qos_peer and theirs.has_qos_peer)
            self.assertEqual([event.kind for event in ours.events(1)][:1], ["agreed"])
            for number, length in enumerate((0, 1, 1500, 8192, 66_000)):
                message = bytes([number]) * length
                for sends, receives in ((ours, theirs), (theirs, ours)):
                    self.assertEqual(sends.send(message), length)
                    self.assertEqual(receives.recv(66_536), message)
            mib = theirs.mib
            self.assertEqual((mib.receive.received.messages, mib.receive.received.lost), (5, 0))
            self.assertIsNone(mib.scheduling)
            with self.assertRaisesRegex(cutline.OptionError, "at most 66000 B"):
                ours.send(bytes(66_001))

    def test_addresses_have_two_parts(self):
        with socket.create_server(LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            host, port = server.getsockname()
            self.assertEqual(host, NO_LINK)
            self.assertGreater(port, 0)
            self.assertEqual((server.family, server.type), (plain.AF_PACKET, SOCK_DGRAM))
            with self.assertRaises(OSError) as why:
                socket.create_server((host, port), type=SOCK_DGRAM)
            self.assertEqual(why.exception.errno, errno.EADDRINUSE)
        # An address of this host is one to listen at, too.
        with socket.create_server((host, port), type=SOCK_DGRAM) as server:
            self.assertEqual(server.getsockname(), (host, port))
        ours, theirs = pair()
        with ours, theirs:
            self.assertEqual(theirs.getpeername(), ours.getsockname())
            self.assertEqual((ours.family, ours.getpeername()[0]), (plain.AF_PACKET, NO_LINK))

    def test_timeouts_and_calls_that_do_not_wait(self):
        ours, theirs = pair()
        with ours, theirs:
            theirs.settimeout(0.05)
            with self.assertRaises(TimeoutError):
                theirs.recv(100)
            theirs.setblocking(False)
            with self.assertRaises(BlockingIOError):
                theirs.recv(100)
            ours.send(b"now")
            self.assertTrue(select.select([theirs], [], [], 60)[0])
            self.assertEqual(theirs.recv(100), b"now")
        with socket.create_server(LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            server.settimeout(0.05)
            with self.assertRaises(TimeoutError):
                server.accept()

    def test_errors_name_the_allowed_values(self):
        for host, type, expected in [
            (NO_LINK, SOCK_STREAM, "frames below IP carry datagrams"),
            ("direct:lo/00", SOCK_DGRAM, "direct:INTERFACE/LINK-ADDRESS:PORT"),
            ("direct:nosuch0/02:00:00:00:00:01", SOCK_DGRAM, "one of the interfaces "),
        ]:
            for call in (socket.create_connection, socket.create_server):
                with self.assertRaisesRegex(cutline.OptionError, expected):
                    call((host, 7000), type=type)
        with self.assertRaisesRegex(cutline.OptionError, "direct:INTERFACE/LINK-ADDRESS:PORT"):
            socket.create_connection(("direct:lo", 7000), type=SOCK_DGRAM)
        with self.assertRaisesRegex(cutline.OptionError, f"that of the interface, {NO_LINK}"):
            socket.create_server(("direct:lo/02:00:00:00:00:01", 0), type=SOCK_DGRAM)
        with self.assertRaisesRegex(OSError, "there is no interface `nosuch0`") as why:
            socket.create_server(("direct:nosuch0", 0), type=SOCK_DGRAM)
        self.assertEqual(why.exception.errno, errno.ENODEV)
        with self.assertRaisesRegex(cutline.OptionError, "frames below IP cross no router"):
            socket.create_server(LOOPBACK, type=SOCK_DGRAM, options={"service": "mark"})
        with self.assertRaises(OSError) as why:
            with socket.create_server(LOOPBACK, type=SOCK_DGRAM) as server:
                server._native.shutdown(1)
        self.assertEqual(why.exception.errno, errno.EOPNOTSUPP)

    def test_connecting_has_the_timeout_and_can_be_interrupted(self):
        options = {"peer": "speaks", "negotiation.give-up": "120 s"}
        with self.assertRaises(TimeoutError):
            socket.create_connection((NO_LINK, 65_535), type=SOCK_DGRAM, options=options, timeout=0.2)
        program = textwrap.dedent(f"""
            import os, signal, threading
            from cutline import socket
            try:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                socket.create_connection(({NO_LINK!r}, 65535), type=socket.SOCK_DGRAM, options={options!r})
            except KeyboardInterrupt:
                print("interrupted")
            """)
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((found.stdout, found.stderr), ("interrupted\n", ""))

    def test_a_missing_capability_is_named(self):
        program = textwrap.dedent(f"""
            import errno
            from cutline import socket
            for call, host in ((socket.create_server, "direct:lo"), (socket.create_connection, {NO_LINK!r})):
                try:
                    call((host, 7000), type=socket.SOCK_DGRAM)
                except PermissionError as error:
                    print(error.errno == errno.EPERM, "CAP_NET_RAW" in str(error))
            """)
        self.assertIsNotNone(shutil.which("setpriv"))
        without = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
        found = subprocess.run([*without, sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((found.stdout, found.stderr), ("True True\n" * 2, ""))


@unittest.skipIf(refusal(), refusal())
class Link(unittest.TestCase):
    SERVER = """
        import sys
        from cutline import socket
        with socket.create_server(("direct:host", 7000), {spec!r}, type=socket.SOCK_DGRAM, options={options!r}) as server:
            print("listening", flush=True)
            connection, peer = server.accept()
            connection.settimeout(60)
            with connection:
                while message := connection.recv(66536):
                    connection.send(message)
                received = connection.mib.receive.received
                print(peer[0], received.messages, received.lost)
        """
    CLIENT = """
        import asyncio
        from cutline import socket
        to = "direct:host/02:00:00:00:00:0b", 7000
        async def main():
            reader, writer = await socket.open_connection(to, {spec!r}, type=socket.SOCK_DGRAM, options={options!r}, timeout=60)
            for number in range(1, 21):
                message = bytes([number]) * (number * 3300)
                writer.write(message)
                assert await asyncio.wait_for(reader.read(), 60) == message, number
            writer.write(b"")
            writer.close()
            await writer.wait_closed()
        asyncio.run(main())
        """

    def enter(self, program):
        """A process in a network namespace of its own, which waits for a line before it runs the program."""
        code = "input()\n" + textwrap.dedent(program).format(spec=BLOCKS, options=QUICK)
        process = subprocess.Popen(["unshare", "--net", sys.executable, "-uc", "print('here')\n" + code], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        if process.stdout.readline() != "here\n":
            self.skipTest(f"no network namespaces: {process.stderr.read()}")
        return process

    def begin(self, process):
        process.stdin.write("\n")
        process.stdin.flush()

    def test_messages_of_a_loop_cross_between_two_hosts(self):
        server, client = self.enter(self.SERVER), self.enter(self.CLIENT)

        def ip(process, *words):
            subprocess.run(["nsenter", f"--net=/proc/{process.pid}/ns/net", "ip", *words], check=True)

        ip(client, *f"link add host address 02:00:00:00:00:0a type veth peer name host address 02:00:00:00:00:0b netns {server.pid}".split())
        for process in (client, server):
            ip(process, "link", "set", "host", "up")
        self.begin(server)
        self.assertEqual(server.stdout.readline(), "listening\n")
        self.begin(client)
        out, errors = client.communicate(timeout=120)
        self.assertEqual((out, errors), ("", ""))
        out, errors = server.communicate(timeout=120)
        self.assertEqual((out, errors), ("direct:host/02:00:00:00:00:0a 21 0\n", ""))


@unittest.skipIf(refusal(), refusal())
class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_readers_and_writers_have_whole_messages(self):
        async def echo(reader, writer):
            async for message in reader:
                writer.write(message)
            writer.close()

        async with await socket.start_server(echo, LOOPBACK, BLOCKS, type=SOCK_DGRAM, options=QUICK) as server:
            reader, writer = await socket.open_connection(server.getsockname(), BLOCKS, type=SOCK_DGRAM, options=QUICK)
            for length in (1, 1500, 65_536, 65_537, 66_000):
                message = bytes([length % 251]) * length
                writer.write(message)
                await writer.drain()
                self.assertTrue(await asyncio.wait_for(reader.read(), 60) == message, length)
            connection = writer.get_extra_info("connection")
            self.assertEqual(connection.mib.receive.received.messages, 5)
            writer.transport.sendto(b"x", writer.get_extra_info("peername"))
            self.assertEqual(await asyncio.wait_for(reader.read(), 60), b"x")
            writer.close()
            await writer.wait_closed()
            server.close()
            server.abort_clients()

    async def test_a_protocol_has_them_too(self):
        class Collect(asyncio.DatagramProtocol):
            def __init__(self):
                self.got = asyncio.Queue()

            def datagram_received(self, data, addr):
                self.got.put_nowait((data, addr))

        server = await socket.create_server_endpoint(Collect, LOOPBACK, type=SOCK_DGRAM, options=QUICK)
        transport, protocol = await socket.create_endpoint(Collect, server.getsockname(), type=SOCK_DGRAM, options=QUICK)
        transport.sendto(b"a message")
        server_transport = None
        while server_transport is None:
            await asyncio.sleep(0.01)
            server_transport = next(iter(server._transports), None)
        found = await asyncio.wait_for(server_transport.get_protocol().got.get(), 60)
        self.assertEqual(found, (b"a message", transport.get_extra_info("sockname")))
        transport.close()
        server.close()
        server.abort_clients()
        await asyncio.wait_for(server.wait_closed(), 60)


if __name__ == "__main__":
    unittest.main()
