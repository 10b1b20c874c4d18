"""Each call of Python's own sockets and asyncio, with its arguments, has the same effect here."""

import array
import asyncio
import collections
import contextlib
import errno
import gc
import io
import os
import resource
import shutil
import signal
import socket as plain
import subprocess
import sys
import textwrap
import threading
import time
import types
import unittest
import weakref
from unittest import mock

from cutline import socket
from cutline.socket import SOCK_DGRAM, SOCK_STREAM

# A peer that takes part has a minute: a thread of a busy machine may have no turn for seconds.
QUICK = {"negotiation.first-timeout": "20 ms", "negotiation.give-up": "60 s", "detection": "60 s",
         "monitor.interval": "20 ms"}
# For peers that take no part.
HASTY = {**QUICK, "negotiation.give-up": "500 ms", "detection": "200 ms"}
LOOPBACK = ("127.0.0.1", 0)


def connect(server, spec=None, **more):
    """The end that connects to a server, the end that is accepted, and its peer's address."""
    accepted = []
    thread = threading.Thread(target=lambda: accepted.extend(server.accept()))
    thread.start()
    connected = socket.create_connection(server.getsockname(), spec, **({"type": server.type, "options": QUICK} | more))
    thread.join()
    return connected, *accepted


def ours(type=SOCK_STREAM):
    with socket.create_server(LOOPBACK, type=type, options=QUICK) as server:
        connected, accepted, _ = connect(server, timeout=60)
    accepted.settimeout(60)
    return connected, accepted


def theirs():
    with plain.create_server(LOOPBACK) as server:
        connected = plain.create_connection(server.getsockname(), timeout=60)
        accepted, _ = server.accept()
        accepted.settimeout(60)
        return connected, accepted


def outcome(call, *words, **options):
    """The result, or the kind of the exception."""
    try:
        found = call(*words, **options)
    except Exception as error:
        return type(error), getattr(error, "errno", None)
    if isinstance(found, io.IOBase):
        return type(found).__name__, getattr(found, "mode", None) if isinstance(found, io.TextIOBase) else None
    return found


# Each call on a connected pair with the same state: "hello" waits to be read.
CALLS = [
    ("send", (b"ab",), {}), ("send", (bytearray(b"ab"),), {}), ("send", (memoryview(b"ab"),), {}),
    ("send", (array.array("I", [1, 2]),), {}), ("send", (b"ab", 0), {}), ("send", ("text",), {}), ("send", (5,), {}),
    ("send", (), {}),
    ("sendall", (b"ab",), {}), ("sendall", (bytearray(b"ab"),), {}), ("sendall", (memoryview(b"abcd")[1:3],), {}),
    ("sendall", (array.array("H", [1, 2]),), {}), ("sendall", (b"", 0), {}), ("sendall", ("text",), {}),
    ("recv", (5,), {}), ("recv", (2, 0), {}), ("recv", (-1,), {}), ("recv", ("5",), {}), ("recv", (), {}),
    ("recv_into", (bytearray(5),), {}), ("recv_into", (bytearray(9), 5), {}), ("recv_into", (bytearray(9), 5, 0), {}),
    ("recv_into", (bytearray(3), 5), {}), ("recv_into", (bytearray(3), -1), {}), ("recv_into", (b"no",), {}),
    ("recv_into", (array.array("B", bytes(5)),), {}), ("recv_into", (bytearray(9),), {"nbytes": 5}),
    ("settimeout", (1,), {}), ("settimeout", (0.5,), {}), ("settimeout", (None,), {}), ("settimeout", (0,), {}),
    ("settimeout", (-1,), {}), ("settimeout", ("1",), {}),
    ("gettimeout", (), {}), ("setblocking", (True,), {}), ("setblocking", (0,), {}), ("getblocking", (), {}),
    ("shutdown", (plain.SHUT_WR,), {}), ("shutdown", (plain.SHUT_RDWR,), {}), ("shutdown", (9,), {}),
    ("shutdown", ("x",), {}),
    ("makefile", (), {}), ("makefile", ("r",), {}), ("makefile", ("rb",), {}), ("makefile", ("w",), {}),
    ("makefile", ("wb",), {}), ("makefile", ("rw",), {}), ("makefile", ("rwb",), {}), ("makefile", ("x",), {}),
    ("makefile", ("r", 0), {}), ("makefile", ("rb", 100), {}),
    ("makefile", ("r",), {"encoding": "ascii", "errors": "replace", "newline": "\n"}),
    ("close", (), {}),
]

# Each call on the transport of a new connection in an event loop.
TRANSPORT_CALLS = [
    ("write", (b"ab",), {}), ("write", (bytearray(b"ab"),), {}), ("write", (memoryview(b"abcd")[1:3],), {}), ("write", (b"",), {}),
    ("write", (), {"data": b"ab"}), ("write", ("text",), {}), ("write", (5,), {}), ("write", (None,), {}), ("write", (), {}),
    ("writelines", ([b"a", bytearray(b"b")],), {}), ("writelines", ([],), {}), ("writelines", (["text"],), {}),
    ("writelines", (5,), {}), ("write_eof", (), {}), ("can_write_eof", (), {}), ("get_write_buffer_size", (), {}),
    ("get_write_buffer_limits", (), {}), ("set_write_buffer_limits", (), {}), ("set_write_buffer_limits", (1000,), {}),
    ("set_write_buffer_limits", (1000, 10), {}), ("set_write_buffer_limits", (), {"low": 100}),
    ("set_write_buffer_limits", (), {"high": 0}), ("set_write_buffer_limits", (10, 1000), {}),
    ("set_write_buffer_limits", (), {"high": 100, "low": -1}), ("set_write_buffer_limits", ("1000",), {}),
    ("pause_reading", (), {}), ("resume_reading", (), {}), ("is_reading", (), {}), ("is_closing", (), {}),
    ("get_extra_info", ("nothing",), {}), ("get_extra_info", ("nothing", 5), {}), ("get_extra_info", ("nothing",), {"default": 5}),
    ("get_extra_info", (), {}), ("set_protocol", (), {}), ("close", (), {}), ("abort", (), {}),
]


class Table(unittest.TestCase):
    def test_each_call_has_the_effect_of_a_plain_socket(self):
        for name, words, options in CALLS:
            with self.subTest(call=name, words=words, options=options):
                found = []
                for pair in (theirs, ours):
                    one, other = pair()
                    with one, other:
                        other.sendall(b"hello")
                        if name.startswith("recv"):
                            # "hello" comes at once, and is one message.
                            self.assertEqual(one.makefile("rb").peek(5)[:5], b"hello")
                            other.sendall(b"hello")
                        found.append(outcome(getattr(one, name), *words, **options))
                        found.append((one.gettimeout(), one.fileno() >= 0))
                self.assertEqual(found[:2], found[2:])

    def test_types_of_sockets(self):
        for host in ("127.0.0.1", "::1"):
            with self.subTest(host=host):
                family = plain.AF_INET6 if ":" in host else plain.AF_INET
                try:
                    like = plain.create_server((host, 0), family=family)
                except OSError:
                    self.skipTest("the host has no IPv6")
                with like, socket.create_server((host, 0), options=QUICK) as server:
                    self.assertEqual((server.family, server.type, server.proto), (like.family, like.type, like.proto))
                    self.assertEqual((server.timeout, server.gettimeout(), server.getblocking()), (None, None, True))
                    address = server.getsockname()
                    self.assertEqual((len(address), address[2:]), (len(like.getsockname()), like.getsockname()[2:]))
                    client, connection, peer = connect(server)
                    with client, connection:
                        self.assertEqual((peer, connection.getpeername()), (client.getsockname(),) * 2)
                        self.assertEqual(client.getpeername(), address)

    def test_a_listener_has_a_timeout(self):
        for type in (SOCK_STREAM, SOCK_DGRAM):
            with socket.create_server(LOOPBACK, type=type, options=QUICK) as server:
                server.settimeout(0.05)
                with self.assertRaises(TimeoutError):
                    server.accept()
                server.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    server.accept()

    def test_the_default_timeout_holds(self):
        plain.setdefaulttimeout(70)
        try:
            with socket.create_server(LOOPBACK, options=QUICK) as server:
                one, other, _ = connect(server)
                with one, other:
                    self.assertEqual((one.gettimeout(), other.gettimeout()), (70, 70))
                one, other, _ = connect(server, timeout=None)
                with one, other:
                    self.assertIsNone(one.gettimeout())
        finally:
            plain.setdefaulttimeout(None)

    def test_a_closed_socket_reports_its_state(self):
        for one in (*ours(), socket.create_server(LOOPBACK, options=QUICK)):
            one.close()
            one.close()
            self.assertEqual(one.fileno(), -1)
            for call, words in [(one.getsockname, ()), (one.setblocking, (True,)), (one.settimeout, (1,))]:
                with self.assertRaises(OSError) as raised:
                    call(*words)
                self.assertEqual(raised.exception.errno, errno.EBADF)

    def test_a_server_without_a_host_is_at_all_addresses(self):
        with socket.create_server(("", 0), options=QUICK) as server:
            self.assertEqual(server.getsockname()[0], "0.0.0.0")
        with self.assertRaises(OverflowError):
            socket.create_server(("127.0.0.1", 65536), options=QUICK)
        with self.assertRaises(TypeError):
            socket.create_connection(("127.0.0.1",), options=QUICK)

    def test_files_of_a_stream_read_and_write(self):
        one, other = ours()
        with one, other, one.makefile("rw", encoding="utf-8", newline="\n") as file:
            file.write("für\n")
            file.flush()
            with other.makefile("r", encoding="utf-8") as lines:
                self.assertEqual(lines.readline(), "für\n")
            other.sendall("two\nlines\n".encode())
            self.assertEqual([file.readline(), file.readline()], ["two\n", "lines\n"])
            buffer = bytearray(b"....")
            other.sendall(memoryview(bytearray(b"ab")))
            self.assertEqual((one.recv_into(buffer, 2), buffer), (2, b"ab.."))

    def test_a_closed_connection_is_open_until_its_files_are_closed(self):
        for pair in (theirs, ours):
            with self.subTest(pair=pair.__name__):
                one, other = pair()
                with other:
                    writes, reads = one.makefile("wb"), one.makefile("rb")
                    writes.write(b"written before the end")
                    one.close()
                    self.assertGreaterEqual(one.fileno(), 0)
                    other.sendall(b"answer")
                    self.assertEqual(reads.read(6), b"answer")
                    writes.close()
                    self.assertGreaterEqual(one.fileno(), 0)
                    reads.close()
                    reads.close()
                    self.assertEqual(one.fileno(), -1)
                    with other.makefile("rb") as received:
                        self.assertEqual(received.read(), b"written before the end")
                # A file that is collected is closed.
                one, other = pair()
                with other:
                    file = one.makefile("rwb")
                    one.close()
                    del file
                    gc.collect()
                    self.assertEqual((one.fileno(), other.recv(1)), (-1, b""))

    def test_a_specification_is_any_mapping(self):
        sizes = collections.ChainMap({"size": "900 B", "coerce": True})
        for spec in (types.MappingProxyType({"send": sizes}), collections.UserDict(send=dict(sizes)), {"send": sizes}):
            with socket.create_server(LOOPBACK, options=QUICK) as server:
                one, other, _ = connect(server, spec, options=types.MappingProxyType(QUICK))
                with one, other:
                    self.assertTrue(other.has_qos_peer)
                    self.assertEqual(one.mib.send.effective.size, 900)
        for spec in (5, {"send": {"size": object()}}):
            with self.assertRaisesRegex(TypeError, "spec: "):
                socket.create_connection(("127.0.0.1", 9), spec)

    def test_a_handler_that_holds_its_connection_is_collected(self):
        class Holder:
            def __init__(self):
                self.connection, self.other = ours()
                self.connection.on_event(self.handle)

            def handle(self, event):
                pass

        descriptors = []
        for _ in range(3):
            holder = Holder()
            descriptors.append(holder.connection.fileno())
            seen = weakref.ref(holder)
            del holder
            # A handler that is running holds it for a moment.
            until = time.monotonic() + 60
            while seen() is not None and time.monotonic() < until:
                gc.collect()
                time.sleep(0.01)
            self.assertIsNone(seen())


def run(program, *words, prefix=(), **options):
    """A program of this Python in a process of its own."""
    command = [*prefix, sys.executable, "-c", textwrap.dedent(program), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)


@contextlib.contextmanager
def without_descriptors():
    """Within it no descriptor can be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    fillers = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
        while True:
            try:
                fillers.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        for filler in fillers:
            os.close(filler)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Zones(unittest.TestCase):
    PROGRAM = """
        import socket as plain
        import threading
        import time
        from cutline import socket

        def is_reached():
            # The kernel makes the local route of an address in a work queue, a little after the address.
            with plain.socket(plain.AF_INET6, plain.SOCK_DGRAM) as own:
                try:
                    own.bind(("fe80::1", 0, 0, 1))
                    own.settimeout(0.01)
                    own.sendto(b"reached", own.getsockname())
                    return own.recv(10) == b"reached"
                except OSError:
                    return False

        while not is_reached():
            time.sleep(0.005)
        for given in (("fe80::1%lo", 0), ("fe80::1", 0, 0, 1)):
            for type in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.create_server(given, type=type) as server:
                    host, port, flow, zone = server.getsockname()
                    assert (host, zone) == ("fe80::1", 1), server.getsockname()
                    accepted = []
                    thread = threading.Thread(target=lambda: accepted.append(server.accept()), daemon=True)
                    thread.start()
                    with socket.create_connection(server.getsockname(), type=type) as client:
                        client.send(b"hello")
                        thread.join()
                        (connection, peer), = accepted
                        assert connection.recv(10) == b"hello" and peer[3] == 1, peer
                        connection.close()
        try:
            socket.create_connection(("fe80::1", 9))
        except OSError as error:
            assert "write fe80::1%INTERFACE" in str(error), error
        else:
            assert False
        print("done")
        """

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"), "needs root and ip")
    def test_link_local_addresses_have_zones(self):
        # The kernel makes the route of an address in a work queue, a little later.
        network = ("ip link set lo up && ip -6 addr add fe80::1/64 dev lo nodad && { for n in $(seq 600); do "
                   "ip -6 route show table local | grep -q 'fe80::1 ' && break; sleep 0.1; done; exec \"$@\"; }")
        found = run(self.PROGRAM, prefix=["unshare", "-n", "sh", "-c", network, "sh"])
        self.assertEqual((found.stdout, found.returncode), ("done\n", 0), found.stderr)


class Servers(unittest.IsolatedAsyncioTestCase):
    def test_servers_and_transports_have_every_public_name_of_asyncio(self):
        def public(kind):
            return {name for name in dir(kind) if not name.startswith("_")}

        self.assertEqual(public(asyncio.base_events.Server) - public(socket.AsyncServer), set())
        self.assertEqual(public(asyncio.Transport) - public(socket.Transport), set())
        # Of those of datagrams one end is the only one.
        self.assertEqual(public(asyncio.DatagramTransport) - public(socket.Transport), set())

    async def transports(self, protocol=asyncio.Protocol):
        """The transport of asyncio and that of QoS sockets, each to a listener that reads nothing."""
        made = []
        for is_plain in (True, False):
            listener = plain.create_server(LOOPBACK)
            self.addCleanup(listener.close)
            address = listener.getsockname()
            if is_plain:
                transport, _ = await asyncio.get_running_loop().create_connection(protocol, *address)
            else:
                transport, _ = await socket.create_endpoint(protocol, address, options={"peer": "plain"})
            made.append(transport)
        return made

    async def test_each_call_of_a_transport_has_the_effect_of_asyncio(self):
        for name, words, options in TRANSPORT_CALLS:
            with self.subTest(call=name, words=words, options=options):
                found = []
                for transport in await self.transports():
                    found.append((
                        outcome(getattr(transport, name), *words, **options), transport.get_write_buffer_size(),
                        transport.get_write_buffer_limits(), transport.is_closing(), transport.is_reading()))
                    transport.abort()
                self.assertEqual(*found)
        for transport in await self.transports():
            for name in ("peername", "sockname", "socket"):
                self.assertIsNotNone(transport.get_extra_info(name), name)
            transport.abort()

    async def test_a_protocol_may_have_buffers_of_its_own(self):
        ended, content = asyncio.get_running_loop().create_future(), bytes(range(100))

        class Buffered(asyncio.BufferedProtocol):
            buffer, got = bytearray(7), b""

            def get_buffer(self, sizehint):
                return self.buffer

            def buffer_updated(self, nbytes):
                self.got += self.buffer[:nbytes]

            def eof_received(self):
                ended.set_result(None)

        async def serve(reader, writer):
            writer.write(content)
            writer.close()

        async with await socket.start_server(serve, LOOPBACK, options=QUICK) as server:
            _, protocol = await socket.create_endpoint(Buffered, server.getsockname(), options=QUICK)
            await asyncio.wait_for(ended, 60)
            self.assertEqual(protocol.got, content)
            server.close()

    async def test_limits_of_a_buffer_hold_for_bytes_that_wait_already(self):
        class Counting(asyncio.Protocol):
            pauses = 0

            def pause_writing(self):
                self.pauses += 1

        for transport in await self.transports(Counting):
            with self.subTest(transport=type(transport).__name__):
                transport.set_write_buffer_limits(high=1 << 30)
                # More than the kernel takes.
                while transport.get_write_buffer_size() == 0:
                    transport.write(bytes(1 << 20))
                self.assertEqual(transport.get_protocol().pauses, 0)
                # As before `drain`, which is to wait until all is sent.
                transport.set_write_buffer_limits(high=0)
                self.assertEqual(transport.get_protocol().pauses, 1)
                transport.abort()
                self.assertEqual(transport.get_write_buffer_size(), 0)

    async def test_a_server_is_a_server_of_asyncio(self):
        async def serve(reader, writer):
            writer.write(await reader.read(100))
            await writer.drain()
            writer.close()

        server = await socket.start_server(serve, LOOPBACK, options=QUICK, start_serving=False)
        self.assertFalse(server.is_serving())
        self.assertIs(server.get_loop(), asyncio.get_running_loop())
        await server.start_serving()
        self.assertTrue(server.is_serving())
        address = server.sockets[0].getsockname()
        self.assertEqual(address, server.getsockname())
        forever = asyncio.create_task(server.serve_forever())
        await asyncio.sleep(0)
        with self.assertRaises(RuntimeError):
            await server.serve_forever()
        reader, writer = await socket.open_connection(address, options=QUICK)
        writer.write(bytearray(b"ask"))
        self.assertEqual(await asyncio.wait_for(reader.read(100), 60), b"ask")
        writer.close()
        await writer.wait_closed()
        forever.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await asyncio.wait_for(forever, 60)
        self.assertEqual((server.sockets, server.is_serving()), ((), False))
        await asyncio.wait_for(server.wait_closed(), 60)
        with self.assertRaises(RuntimeError):
            await server.start_serving()

    async def test_closing_a_server_waits_for_its_connections(self):
        async def serve(reader, writer):
            await reader.read()

        server = await socket.start_server(serve, LOOPBACK, options=QUICK)
        reader, writer = await socket.open_connection(server.getsockname(), options=QUICK)
        writer.write(b"x")
        while not server._transports:
            await asyncio.sleep(0.01)
        server.close()
        closed = asyncio.create_task(server.wait_closed())
        await asyncio.sleep(0.05)
        self.assertFalse(closed.done())
        server.close_clients()
        await asyncio.wait_for(closed, 60)
        writer.close()

    async def test_datagrams_are_kept_apart(self):
        async def echo(reader, writer):
            async for datagram in reader:
                writer.write(datagram)

        async with await socket.start_server(echo, LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            address = server.sockets[0].getsockname()
            pairs = [await socket.open_connection(address, type=SOCK_DGRAM, options=QUICK) for _ in range(3)]
            sent = [bytes([number]) * length for number, length in enumerate((1, 5, 0, 700, 2))]
            for reader, writer in pairs:
                # All wait at the peer before one is read.
                for datagram in sent:
                    writer.write(datagram)
                await writer.drain()
            for reader, writer in pairs:
                got = [await asyncio.wait_for(reader.read(), 60) for _ in sent]
                self.assertEqual(got, sent)
                self.assertFalse(reader.at_eof())
                writer.write(b"long")
                self.assertEqual(await asyncio.wait_for(reader.read(2), 60), b"lo")
                waiting = asyncio.create_task(reader.read())
                await asyncio.sleep(0)
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), 60)
                with self.assertRaises(EOFError):
                    await waiting
                self.assertTrue(reader.at_eof())
            server.close()
            server.abort_clients()

    async def test_a_server_of_datagram_protocols(self):
        class Echo(asyncio.DatagramProtocol):
            def connection_made(self, transport):
                self.transport = transport

            def datagram_received(self, data, addr):
                self.transport.sendto(data + b"!", addr)

        server = await socket.create_server_endpoint(Echo, LOOPBACK, type=SOCK_DGRAM, options=QUICK)
        reader, writer = await socket.open_connection(server.getsockname(), type=SOCK_DGRAM, options=QUICK)
        for number in range(10):
            writer.write(b"%d" % number)
            self.assertEqual(await asyncio.wait_for(reader.read(), 60), b"%d!" % number)
        with self.assertRaisesRegex(ValueError, "addr = "):
            writer.transport.sendto(b"x", ("192.0.2.1", 9))
        writer.close()
        server.close()
        server.abort_clients()
        await asyncio.wait_for(server.wait_closed(), 60)

    async def test_a_datagram_that_is_too_long_ends_nothing(self):
        async def echo(reader, writer):
            async for datagram in reader:
                writer.write(datagram)

        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        async with await socket.start_server(echo, LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            for spec, length in ((None, 65_507), ({"send": {"size": "1000 B", "coerce": True}}, 1001)):
                with self.subTest(spec=spec):
                    reader, writer = await socket.open_connection(
                        server.getsockname(), spec, type=SOCK_DGRAM, options=QUICK)
                    if spec is None:
                        # With the header of a message the kernel refuses it.
                        writer.write(bytes(length))
                        self.assertEqual([report["exception"].errno for report in reports], [errno.EMSGSIZE])
                    else:
                        with self.assertRaisesRegex(socket.OptionError, "a message of 1001 B"):
                            writer.write(bytes(length))
                    self.assertEqual(writer.transport.get_write_buffer_size(), 0)
                    writer.write(b"next")
                    self.assertEqual(await asyncio.wait_for(reader.read(), 60), b"next")
                    writer.close()
                    await asyncio.wait_for(writer.wait_closed(), 60)
            server.close()
            server.abort_clients()
        self.assertEqual(len(reports), 1)

    async def test_nothing_is_written_after_the_end(self):
        async def echo(reader, writer):
            writer.write(await reader.read())
            writer.close()

        async with await socket.start_server(echo, LOOPBACK, options=QUICK) as server:
            reader, writer = await socket.open_connection(server.getsockname(), options=QUICK)
            writer.write(b"all")
            writer.write_eof()
            writer.write_eof()
            with self.assertRaisesRegex(RuntimeError, "after write_eof"):
                writer.write(b"more")
            self.assertEqual(await asyncio.wait_for(reader.read(), 60), b"all")
            writer.close()
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), 60)
            server.close()

    async def test_a_connection_that_always_has_data_lets_others_run(self):
        class Count(asyncio.Protocol):
            pieces = 0

            def data_received(self, data):
                self.pieces += 1

        def always(size):
            if protocol.pieces == 10_000:
                raise BlockingIOError
            return b"x"

        async with await socket.start_server(lambda reader, writer: None, LOOPBACK, options=QUICK) as server:
            transport, protocol = await socket.create_endpoint(Count, server.getsockname(), options=QUICK)
            with mock.patch.object(transport._connection, "recv", side_effect=always):
                transport._read()
                self.assertLess(protocol.pieces, 10_000)
                # It goes on by itself.
                while protocol.pieces < 10_000:
                    await asyncio.sleep(0)
            transport.close()
            server.close()
            server.abort_clients()

    async def test_a_protocol_that_refuses_its_connection_leaves_no_socket(self):
        class Refusing(asyncio.Protocol):
            def connection_made(self, transport):
                # Of a peer that has not begun, it waits.
                transport.write(b"220 hello")
                raise ValueError("no")

        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        server = await socket.create_server_endpoint(Refusing, LOOPBACK, options=HASTY)
        with plain.create_connection(server.getsockname()) as client:
            client.settimeout(60)
            # It may have been sent before the end, when the client had not begun for a while.
            while await asyncio.to_thread(client.recv, 100):
                pass
        self.assertEqual([str(report["exception"]) for report in reports], ["no"])
        server.close()
        await asyncio.wait_for(server.wait_closed(), 60)

    async def test_a_reader_that_does_not_read_holds_few_datagrams(self):
        readers = asyncio.Queue()
        async with await socket.start_server(
                lambda reader, writer: readers.put_nowait(reader), LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            reader, writer = await socket.open_connection(server.getsockname(), type=SOCK_DGRAM, options=QUICK)
            for number in range(1000):
                writer.write(b"%d" % number)
                if number % 50 == 0:
                    await asyncio.sleep(0.005)
            slow = await asyncio.wait_for(readers.get(), 60)
            until = time.monotonic() + 60
            while len(slow._datagrams) < 256 and time.monotonic() < until:
                await asyncio.sleep(0.01)
            # No event shows that no further datagram is stored.
            await asyncio.sleep(0.2)
            self.assertEqual(len(slow._datagrams), 256)
            self.assertEqual([await slow.read() for _ in range(300)], [b"%d" % number for number in range(300)])
            writer.close()
            server.close()
            server.abort_clients()

    async def test_a_server_that_greets_first_rests_until_the_peer_begins(self):
        greeted = asyncio.Queue()

        async def serve(reader, writer):
            transport = writer.transport
            calls, send = [], transport._connection.send
            transport._connection.send = lambda data: calls.append(1) or send(data)
            writer.write(b"220 hello")
            # The time in which calls are counted.
            await asyncio.sleep(0.5)
            greeted.put_nowait(len(calls))
            writer.transport.abort()

        server = await socket.start_server(serve, LOOPBACK, options=HASTY, key=b"k" * 32)
        with plain.create_connection(server.getsockname()):
            # Each call waits for 5 ms.
            self.assertLess(await asyncio.wait_for(greeted.get(), 60), 150)
        server.close()
        await asyncio.wait_for(server.wait_closed(), 60)

    async def test_without_descriptors_a_server_reports_and_rests(self):
        def serve(reader, writer):
            writer.close()

        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        server = await socket.start_server(serve, LOOPBACK, options=HASTY)
        calls, accept = [], server._server.accept
        server._server.accept = lambda: calls.append(1) or accept()
        client = plain.create_connection(server.getsockname())
        with without_descriptors():
            # The time in which calls are counted.
            await asyncio.sleep(0.5)
            self.assertLess(len(calls), 5)
            self.assertEqual(reports[0]["exception"].errno, errno.EMFILE)
            self.assertIs(reports[0]["socket"], server._server)
        # Then it goes on.
        client.settimeout(60)
        self.assertEqual(await asyncio.to_thread(client.recv, 1), b"")
        client.close()
        server.close()
        await asyncio.wait_for(server.wait_closed(), 60)

    async def test_without_descriptors_a_server_of_datagrams_rests_too(self):
        served, reports = asyncio.Event(), []

        def serve(reader, writer):
            served.set()
            writer.close()

        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        async with await socket.start_server(serve, LOOPBACK, type=SOCK_DGRAM, options=HASTY) as server:
            calls, accept = [], server._server.accept
            server._server.accept = lambda: calls.append(1) or accept()
            with plain.socket(type=SOCK_DGRAM) as client:
                client.connect(server.getsockname())
                with without_descriptors():
                    client.send(b"x")
                    # The time in which calls are counted: without news, one every 50 ms.
                    await asyncio.sleep(0.5)
                    self.assertLess(len(calls), 5)
                    self.assertEqual(reports[0]["exception"].errno, errno.EMFILE)
                # The connection has waited.
                await asyncio.wait_for(served.wait(), 60)

    async def test_an_error_of_a_handler_goes_to_the_loop(self):
        async def serve(reader, writer):
            raise KeyError("on purpose")

        reports = asyncio.Queue()
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.put_nowait(context))
        async with await socket.start_server(serve, LOOPBACK, type=SOCK_DGRAM, options=QUICK) as server:
            reader, writer = await socket.open_connection(server.getsockname(), type=SOCK_DGRAM, options=QUICK)
            writer.write(b"x")
            found = await asyncio.wait_for(reports.get(), 60)
            self.assertIsInstance(found["exception"], KeyError)
            writer.close()


class Silent:
    """A listener that accepts no connection: programs that connect to it wait."""

    def __enter__(self):
        self._listener = plain.socket()
        self._listener.bind(LOOPBACK)
        self._listener.listen(0)
        self.address = self._listener.getsockname()
        self._fillers = []
        for _ in range(3):
            filler = plain.socket()
            filler.setblocking(False)
            filler.connect_ex(self.address)
            self._fillers.append(filler)
        # The kernel does not show when the queue of the listener is full.
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        for one in (self._listener, *self._fillers):
            one.close()


class Waiting(unittest.TestCase):
    def test_an_unawaited_connection_does_not_block_the_loop(self):
        program = """
            import asyncio, sys
            from cutline import socket
            async def main():
                try:
                    await asyncio.wait_for(socket.open_connection(("127.0.0.1", int(sys.argv[1])),
                                                                  options={"peer": "plain"}), 1)
                except TimeoutError:
                    print("late")
            asyncio.run(main())
            """
        with Silent() as silent:
            began = time.monotonic()
            found = run(program, silent.address[1])
            # The kernel itself gives up after two minutes.
            self.assertEqual((found.stdout, found.returncode), ("late\n", 0), found.stderr)
            self.assertLess(time.monotonic() - began, 60)

    def interrupted(self, call, spec=None, types=("SOCK_STREAM", "SOCK_DGRAM")):
        """Sends SIGINT to a program that waits in a call."""
        program = """
            import sys, threading
            from cutline import socket
            QUICK = {"negotiation.first-timeout": "20 ms", "negotiation.give-up": "60 s", "detection": "60 s",
                     "monitor.interval": "20 ms"}
            SPEC = """ + repr(spec) + """
            server = socket.create_server(("127.0.0.1", 0), type=getattr(socket, sys.argv[1]), options=QUICK)
            def waits():
                print("waits", flush=True)
            try:
                """ + call + """
            except KeyboardInterrupt:
                print("interrupted")
            """
        for type in types:
            with self.subTest(call=call, type=type):
                process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), type],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(process.kill)
                self.assertEqual(process.stdout.readline(), "waits\n")
                # No event shows that the call waits.
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                out, errors = process.communicate(timeout=60)
                self.assertEqual((out, process.returncode), ("interrupted\n", 0), errors)

    def test_accept_can_be_interrupted(self):
        self.interrupted("waits(); server.accept()")

    CONNECTED = ("accepted = []; thread = threading.Thread(target=lambda: accepted.append(server.accept()[0])); "
                 "thread.start(); client = socket.create_connection(server.getsockname(), type=getattr(socket, "
                 "sys.argv[1]), options=QUICK, spec=SPEC); thread.join(); list(client.events()); waits()\n                ")

    def test_a_call_that_sends_or_receives_can_be_interrupted(self):
        # As fast as the peer takes nothing, or as the specification allows.
        for call in ("client.recv(10)", "while True: client.send(bytes(1000))"):
            self.interrupted(self.CONNECTED + call, spec={"send": {"max-rate": 0.1, "size": "1000 B", "coerce": True}})

    def test_a_send_without_a_timeout_takes_all_of_it(self):
        # Much more than the kernel holds, to a reader that begins late: the call looks for signals several times.
        data = bytes(20_000_000)
        for options in (QUICK, {"peer": "plain"}):
            with self.subTest(options=options), socket.create_server(LOOPBACK, options=options) as server:
                read = []

                def reads():
                    with server.accept()[0] as accepted:
                        # The reader begins late on purpose.
                        time.sleep(0.3)
                        while part := accepted.recv(1_000_000):
                            read.append(len(part))

                thread = threading.Thread(target=reads)
                thread.start()
                with socket.create_connection(server.getsockname(), options=options) as client:
                    self.assertEqual(client.send(data), len(data))
                thread.join()
                self.assertEqual(sum(read), len(data))

    SILENT = ("import socket as plain; other = plain.create_connection(server.getsockname()); accepted = server.accept()[0]; waits()\n"
              "                ")

    def test_a_call_that_waits_for_the_peer_to_begin_can_be_interrupted_and_has_the_timeout(self):
        for call in ("accepted.has_qos_peer", "accepted.recv(10)"):
            self.interrupted(self.SILENT + call, types=["SOCK_STREAM"])
        with socket.create_server(LOOPBACK, options=HASTY) as server, plain.create_connection(server.getsockname()):
            with server.accept()[0] as accepted:
                accepted.settimeout(0.05)
                for call in (lambda: accepted.recv(10), lambda: accepted.has_qos_peer):
                    self.assertRaises(TimeoutError, call)

    def test_connecting_can_be_interrupted(self):
        with Silent() as silent:
            self.interrupted(f"waits(); socket.create_connection(('127.0.0.1', {silent.address[1]}), options={{'peer': 'plain'}})",
                             types=["SOCK_STREAM"])
        nobody = plain.socket(type=SOCK_DGRAM)
        with nobody:
            nobody.bind(LOOPBACK)
            self.interrupted(f"waits(); socket.create_connection(('127.0.0.1', {nobody.getsockname()[1]}), type=socket.SOCK_DGRAM, "
                             "options={'peer': 'speaks', 'negotiation.give-up': '60 s'})", types=["SOCK_DGRAM"])

    def test_connecting_has_the_timeout(self):
        def connects(address, **more):
            began = time.monotonic()
            with self.assertRaises(TimeoutError):
                socket.create_connection(address, timeout=1, **more)
            self.assertLess(0.9, time.monotonic() - began)
            # The kernel itself, and a negotiation with such a limit, would take two minutes.
            self.assertLess(time.monotonic() - began, 60)

        with Silent() as silent:
            connects(silent.address, options={"peer": "plain"})
        with plain.socket(type=SOCK_DGRAM) as nobody:
            nobody.bind(LOOPBACK)
            connects(nobody.getsockname(), type=SOCK_DGRAM,
                     options={"peer": "speaks", "negotiation.give-up": "120 s"})

    def test_connecting_without_waiting_fails_as_with_a_plain_socket(self):
        with plain.create_server(LOOPBACK) as server:
            found = [outcome(call, server.getsockname(), timeout=0)
                     for call in (plain.create_connection, socket.create_connection)]
        self.assertEqual(found, [(BlockingIOError, errno.EINPROGRESS)] * 2)

    def test_every_address_of_a_name_is_tried(self):
        if plain.getaddrinfo("localhost", 0, type=SOCK_STREAM)[0][4][0] != "::1":
            self.skipTest("localhost has one address")
        with socket.create_server(LOOPBACK, options=QUICK) as server:
            accepted = []
            thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
            thread.start()
            with socket.create_connection(("localhost", server.getsockname()[1]), options=QUICK, timeout=60) as one:
                thread.join()
                self.assertEqual(one.getpeername()[0], "127.0.0.1")
                accepted[0].close()

    def test_waiting_for_events_can_be_interrupted(self):
        self.interrupted(self.CONNECTED + "list(client.events(timeout=100000))")


class Forks(unittest.TestCase):
    """Children of a process that has used the library, as gunicorn, multiprocessing and celery make them."""

    PROGRAM = """
        import errno, os, signal, sys, threading, time
        from cutline import socket

        QUICK = {"negotiation.first-timeout": "20 ms", "negotiation.give-up": "60 s", "detection": "60 s",
                 "monitor.interval": "20 ms"}
        KIND, HERE = getattr(socket, sys.argv[1]), ("127.0.0.1", int(sys.argv[2]))

        def connected(address):
            return socket.create_connection(address, "telemetry", type=KIND, options=QUICK, timeout=100)

        def exchange(one):
            one.send(b"x" * 100)
            assert one.recv(1000) == b"x" * 100

        def is_refused(call, *words):
            try:
                call(*words)
            except OSError as error:
                assert error.errno == errno.ENOTCONN and "fork" in str(error), error
            else:
                raise AssertionError("nothing is refused")

        def child():
            signal.alarm(120)
            is_refused(inherited.send, b"x")
            is_refused(inherited.recv, 10)
            is_refused(lambda: inherited.mib)
            is_refused(lambda: list(inherited.events()))
            is_refused(inherited.settimeout, 1)
            is_refused(inherited.setblocking, False)
            inherited.close()
            with connected(HERE) as own:
                exchange(own)
                # A thread of this process takes the peer's reports.
                while (found := own.mib.send.received) is None or not found.messages:
                    time.sleep(0.01)
            if KIND == socket.SOCK_DGRAM:
                is_refused(listener.accept)
            else:
                listener.settimeout(100)
                theirs, _ = listener.accept()
                theirs.sendall(theirs.recv(1000))
                # The parent has all of it, and closes.
                assert theirs.recv(1000) == b""
                theirs.close()

        # A handler of events runs while the process forks.
        runs, goes_on = threading.Event(), threading.Event()
        handled = connected(HERE)
        handled.on_event(lambda event: (runs.set(), goes_on.wait(120)))
        assert runs.wait(120), "no event has come"
        process = os.fork()
        if process == 0:
            signal.alarm(60)
            handled.close()
            os._exit(0)
        _, status = os.waitpid(process, 0)
        goes_on.set()
        assert status == 0, f"a child ended with {status} (14: it hung)"
        handled.close()

        inherited = connected(HERE)
        exchange(inherited)
        listener = socket.create_server(("127.0.0.1", 0), "telemetry", type=KIND, options=QUICK)
        for _ in range(5):
            process = os.fork()
            if process == 0:
                try:
                    child()
                except BaseException as error:
                    print("child:", repr(error), flush=True)
                    os._exit(1)
                os._exit(0)
            if KIND == socket.SOCK_STREAM:
                with connected(listener.getsockname()) as to_child:
                    exchange(to_child)
            _, status = os.waitpid(process, 0)
            assert status == 0, f"a child ended with {status} (14: it hung)"
            exchange(inherited)
        print("well")
        """

    def test_a_child_has_connections_of_its_own(self):
        def echo(connection):
            with connection:
                try:
                    while data := connection.recv(1000):
                        connection.sendall(data)
                except OSError:
                    pass

        def serve(server):
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        for kind in ("SOCK_STREAM", "SOCK_DGRAM"):
            with self.subTest(kind=kind):
                server = socket.create_server(LOOPBACK, "telemetry", type=getattr(socket, kind), options=QUICK)
                threading.Thread(target=serve, args=(server,), daemon=True).start()
                found = run(self.PROGRAM, kind, server.getsockname()[1])
                self.assertEqual((found.stdout, found.returncode), ("well\n", 0), found.stderr)


if __name__ == "__main__":
    unittest.main()
