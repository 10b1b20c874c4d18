"""QoS sockets in asyncio: transports that work with any asyncio protocol, streams, datagrams, and servers of both."""

import asyncio
import errno
import threading
from collections import deque
from socket import SOCK_DGRAM, SOCK_STREAM

from .errors import OptionError

HIGH_WATER = 65536
ACCEPTED_AT_ONCE = 100
"""Number of connections that are accepted before the loop does other work."""
RECEIVED_AT_ONCE = 32
"""Number of messages, or pieces of a stream, that are received before the loop does other work."""
LINGER = 60.0
"""Time after which a loop that ends gives up a peer that does not read, s: the default of the option `linger`."""
ACCEPT_RETRY_DELAY = 1.0
"""Pause of accepting after the system has run out of descriptors or memory, s, as in asyncio."""
CALL_EVERY = 0.05
"""Interval of calls of an idle listener for datagrams, s: each call repeats lost messages."""
MOST_WAITING = 256
"""Number of unread datagrams above which no more are received."""
LONGEST_PIECE = 66560
"""The longest datagram, which is one in frames below IP, and the largest read from a stream, bytes."""
NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


async def _in_thread(function):
    """Makes a call that waits. If this is cancelled, the loop need not wait for the call: sockets that it opens are closed."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def give(result, error):
        if future.done():
            if error is None:
                result.close()
        elif error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work():
        result = error = None
        try:
            result = function()
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(give, result, error)
        except RuntimeError:
            # The loop is closed.
            if error is None:
                result.close()

    threading.Thread(target=work, name="cutline", daemon=True).start()
    return await future


def _fill(protocol, data):
    """Copies received bytes into the buffers of an asyncio.BufferedProtocol."""
    rest = memoryview(data)
    while rest:
        buffer = memoryview(protocol.get_buffer(len(rest)))
        size = min(len(buffer), len(rest))
        if size == 0:
            raise RuntimeError("get_buffer() returned an empty buffer")
        buffer[:size] = rest[:size]
        # The protocol may change the size of its buffer.
        buffer.release()
        protocol.buffer_updated(size)
        rest = rest[size:]


class Transport(asyncio.Transport):
    """A connection in an event loop. The connection itself is `get_extra_info("connection")`: its MIB, its events."""

    def __init__(self, loop, connection, protocol, is_stream, server=None):
        super().__init__({"connection": connection, "socket": connection, "peername": connection.getpeername(),
                          "sockname": connection.getsockname()})
        self._loop, self._connection, self._protocol, self._is_stream = loop, connection, protocol, is_stream
        self._server = server
        self._waiting, self._size = deque(), 0
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4
        self._is_closing = self._is_paused = self._has_paused = self._ends = self._is_at_end = False
        self._ended = self._rest = None
        connection.setblocking(False)
        self._descriptor = connection.fileno()
        if server is not None:
            server._attach(self)
        try:
            protocol.connection_made(self)
        except BaseException:
            # The caller closes the connection.
            self._is_closing = True
            self._waiting.clear()
            if self._descriptor >= 0:
                loop.remove_reader(self._descriptor)
                loop.remove_writer(self._descriptor)
                self._descriptor = -1
            if server is not None:
                server._detach(self)
            raise
        if self._descriptor >= 0 and not (self._is_paused or self._is_closing):
            loop.add_reader(self._descriptor, self._read)
            # The descriptor does not report earlier data again.
            loop.call_soon(self._read)

    def _read(self):
        for _ in range(RECEIVED_AT_ONCE):
            if self._is_closing or self._is_paused or self._is_at_end:
                return
            try:
                data = self._connection.recv(LONGEST_PIECE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                return self._end(error)
            if not self._is_stream:
                self._protocol.datagram_received(data, self._connection.getpeername())
            elif data and isinstance(self._protocol, asyncio.BufferedProtocol):
                _fill(self._protocol, data)
            elif data:
                self._protocol.data_received(data)
            else:
                self._is_at_end = True
                self._loop.remove_reader(self._descriptor)
                if not self._protocol.eof_received():
                    self.close()
                return
        # The descriptor does not report data that has been received.
        self._loop.call_soon(self._read)

    def write(self, data):
        """Sends at once, or when there is room. A datagram that is longer than agreed raises OptionError, or is one for `error_received` if
        it has waited."""
        data = bytes(memoryview(data))
        if self._ends:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing or (self._is_stream and not data):
            return
        self._waiting.append(data)
        self._size += len(data)
        if len(self._waiting) == 1:
            self._loop.add_writer(self._descriptor, self._write)
            self._write(is_call=True)
        self._pause_if_full()

    def _pause_if_full(self):
        if self._size > self._high and not self._has_paused:
            self._has_paused = True
            self._protocol.pause_writing()

    def sendto(self, data, addr=None):
        """Sends a datagram to the peer, which is the only one."""
        if addr is not None and addr[:2] != self.get_extra_info("peername")[:2]:
            raise ValueError(f"addr = {addr!r}: must be None or {self.get_extra_info('peername')!r}")
        self.write(data)

    def _write(self, is_call=False):
        refused = None
        while self._waiting:
            data = self._waiting.popleft()
            try:
                sent = self._connection.send(data)
            except (BlockingIOError, InterruptedError):
                self._waiting.appendleft(data)
                if not self._is_stream or self._connection.joining:
                    # It waits for its turn, or for the peer to begin, rather than for room. The descriptor does not show that.
                    self._loop.remove_writer(self._descriptor)
                    self._loop.call_later(0.005 if self._is_stream else 0.001, self._write)
                else:
                    self._loop.add_writer(self._descriptor, self._write)
                break
            except OptionError as error:
                # The call that sends it has it alone.
                if is_call:
                    refused = error
                else:
                    self._protocol.error_received(error)
            except OSError as error:
                if self._is_stream or error.errno not in (errno.ENOBUFS, errno.EMSGSIZE):
                    return self._end(error)
                # The interface's queue has no room for this datagram, or it is too long. It is lost, as it would be with a plain socket.
                self._protocol.error_received(error)
            if self._descriptor < 0:
                # The protocol has closed the transport.
                return
            self._size -= sent if self._is_stream else len(data)
            if self._is_stream and sent < len(data):
                self._waiting.appendleft(data[sent:])
        if self._has_paused and self._size <= self._low:
            self._has_paused = False
            self._protocol.resume_writing()
        if not self._waiting and self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            if self._is_closing:
                self._end(None)
            elif self._ends:
                self._connection.shutdown(1)
        if refused is not None:
            raise refused

    def can_write_eof(self):
        """True for a stream, which can end one direction."""
        return self._is_stream

    def write_eof(self):
        """Ends the direction in which this end sends, after all waiting bytes are sent."""
        if not self._is_stream:
            raise NotImplementedError("datagrams have no end")
        if self._is_closing or self._ends:
            return
        self._ends = True
        if not self._waiting:
            self._connection.shutdown(1)

    def set_write_buffer_limits(self, high=None, low=None):
        """Sets the number of waiting bytes above which the protocol is paused, and the number at which it is resumed. Bytes that wait already
        count."""
        if high is None:
            high = HIGH_WATER if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high = {high}, low = {low}: high must be at least low, and low at least 0")
        self._high, self._low = high, low
        self._pause_if_full()

    def get_write_buffer_limits(self):
        """The limits of waiting bytes: low, high."""
        return self._low, self._high

    def get_write_buffer_size(self):
        """The number of waiting bytes."""
        return self._size

    def set_protocol(self, protocol):
        """Sets the protocol, which receives the events of the transport."""
        self._protocol = protocol

    def get_protocol(self):
        """The protocol, which receives the events of the transport."""
        return self._protocol

    def pause_reading(self):
        """Pauses receiving."""
        if not self._is_paused and not self._is_closing:
            self._is_paused = True
            self._loop.remove_reader(self._descriptor)

    def resume_reading(self):
        """Resumes receiving."""
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            if not self._is_at_end:
                self._loop.add_reader(self._descriptor, self._read)
                self._loop.call_soon(self._read)

    def is_reading(self):
        """True if the transport is receiving."""
        return not (self._is_paused or self._is_closing)

    def is_closing(self):
        """True if the transport is closed or is closing."""
        return self._is_closing

    def close(self):
        """Closes after all waiting bytes are sent."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.remove_reader(self._descriptor)
            if not self._waiting:
                self._end(None)
            else:
                self._ended = self._loop.create_future()
                # A loop holds its tasks weakly.
                self._rest = self._loop.create_task(self._send_rest())

    async def _send_rest(self):
        """Keeps the loop running until the waiting bytes are sent. `asyncio.run` cancels tasks and waits for them: from then on, a peer
        that does not read for the time LINGER is given up."""
        is_cancelled, size = False, self._size
        while not self._ended.done():
            try:
                await asyncio.wait([self._ended], timeout=LINGER if is_cancelled else None)
            except asyncio.CancelledError:
                is_cancelled = True
                continue
            if self._size == size and not self._ended.done():
                self.abort()
            size = self._size
        # The connection is closed in the next turn.
        await asyncio.sleep(0)

    def abort(self):
        """Closes at once, without the waiting bytes."""
        self._end(None)

    def _end(self, error):
        self._is_closing = True
        self._waiting.clear()
        self._size = 0
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._loop.remove_writer(self._descriptor)
            self._descriptor = -1
            self._loop.call_soon(self._lost, error)
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _lost(self, error):
        try:
            self._protocol.connection_lost(error)
        finally:
            self._connection.close()
            if self._server is not None:
                self._server._detach(self)
                self._server = None


class DatagramReader:
    """Receives from a datagram connection, one datagram at a time: `await reader.read()`, or `async for datagram in reader`, which ends when
    the connection is closed or the peer is gone."""

    def __init__(self, loop=None):
        self._loop = loop or asyncio.get_running_loop()
        self._datagrams, self._waiters = deque(), deque()
        self._transport = self._error = None
        self._has_ended = False

    async def read(self, n=-1):
        """Returns the next datagram, at most n bytes of it if n is not negative. Raises EOFError if there is none and the connection is
        closed or the peer is gone."""
        while not self._datagrams:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise EOFError("the connection is closed")
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        datagram = self._datagrams.popleft()
        if self._transport is not None and len(self._datagrams) <= MOST_WAITING // 4:
            self._transport.resume_reading()
        if self._datagrams:
            self._wake()
        return datagram if n < 0 else datagram[:n]

    def at_eof(self):
        """True if the connection is closed and every datagram was read."""
        return self._has_ended and not self._datagrams

    def exception(self):
        """The error that has ended the connection; None if there is none."""
        return self._error

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.read()
        except EOFError:
            raise StopAsyncIteration from None

    def _wake(self):
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter.set_result(None)

    def _feed(self, datagram):
        self._datagrams.append(datagram)
        if len(self._datagrams) >= MOST_WAITING:
            self._transport.pause_reading()
        self._wake()

    def _end(self, error):
        self._error, self._has_ended = error, True
        while self._waiters:
            self._wake()


class DatagramWriter:
    """Sends over a datagram connection: each `write` is a datagram."""

    def __init__(self, transport, protocol):
        self._transport, self._protocol = transport, protocol

    @property
    def transport(self):
        """The transport."""
        return self._transport

    def write(self, data):
        """Sends a datagram at once, or after those that wait."""
        self._transport.sendto(data)

    async def drain(self):
        """Waits while too many bytes wait to be sent."""
        await self._protocol.drain()

    def close(self):
        """Closes after all waiting bytes are sent."""
        self._transport.close()

    def is_closing(self):
        """True if the transport is closed or is closing."""
        return self._transport.is_closing()

    async def wait_closed(self):
        """Waits until it is closed."""
        await asyncio.shield(self._protocol.closed)

    def get_extra_info(self, name, default=None):
        """Attributes of the connection: "connection", "peername", "sockname"."""
        return self._transport.get_extra_info(name, default)


class _DatagramStream(asyncio.DatagramProtocol):
    """The protocol below a reader and a writer of datagrams."""

    def __init__(self, loop, connected=None):
        self._loop, self._connected = loop, connected
        self.reader, self.closed = DatagramReader(loop), loop.create_future()
        self._drained, self._task = None, None

    def connection_made(self, transport):
        self.reader._transport = transport
        if self._connected is not None:
            _call(self, self._connected, self.reader, DatagramWriter(transport, self))

    def datagram_received(self, data, addr):
        self.reader._feed(data)

    def error_received(self, exc):
        """Reports a datagram that is too long to be sent. One without room in the interface's queue is lost, as in the network."""
        if getattr(exc, "errno", None) != errno.ENOBUFS:
            self._loop.call_exception_handler({"message": "a datagram is not sent", "exception": exc,
                                               "transport": self.reader._transport})

    def pause_writing(self):
        self._drained = self._loop.create_future()

    def resume_writing(self):
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    async def drain(self):
        if self.reader._error is not None:
            raise self.reader._error
        if self.closed.done():
            raise ConnectionResetError("Connection lost")
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def connection_lost(self, exc):
        self.resume_writing()
        # A peer that has closed its socket cannot say so otherwise.
        self.reader._end(None if isinstance(exc, ConnectionRefusedError) else exc)
        if not self.closed.done():
            self.closed.set_result(None)


def _call(owner, connected, reader, writer):
    """Calls the callback that serves a connection, as asyncio's streams do: a coroutine becomes a task, whose error goes to the loop's handler."""
    loop, result = owner._loop, connected(reader, writer)
    if not asyncio.iscoroutine(result):
        return

    def done(task):
        if not task.cancelled() and task.exception() is not None:
            loop.call_exception_handler({"message": "Unhandled exception in client_connected_cb",
                                         "exception": task.exception(), "transport": writer.transport})
        if task.cancelled() or task.exception() is not None:
            writer.transport.close()

    # A loop holds its tasks weakly.
    owner._task = loop.create_task(result)
    owner._task.add_done_callback(done)


async def create_endpoint(protocol_factory, address, spec=None, *, type=SOCK_STREAM, **options):
    """Connects, as `loop.create_connection` does. With SOCK_DGRAM the protocol is an asyncio.DatagramProtocol."""
    from . import socket

    connection = await _in_thread(lambda: socket.create_connection(address, spec, type=type, **options))
    try:
        protocol = protocol_factory()
        return Transport(asyncio.get_running_loop(), connection, protocol, type != SOCK_DGRAM), protocol
    except BaseException:
        connection.close()
        raise


async def open_connection(address, spec=None, *, limit=65536, type=SOCK_STREAM, **options):
    """Connects. Returns an asyncio.StreamReader and an asyncio.StreamWriter; with SOCK_DGRAM a DatagramReader and a DatagramWriter."""
    loop = asyncio.get_running_loop()
    if type == SOCK_DGRAM:
        transport, protocol = await create_endpoint(lambda: _DatagramStream(loop), address, spec, type=type, **options)
        return protocol.reader, DatagramWriter(transport, protocol)
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    transport, protocol = await create_endpoint(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), address, spec, type=type, **options)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class AsyncServer(asyncio.AbstractServer):
    """A listening socket in an event loop. It closes with `close`, or as a context manager."""

    def __init__(self, loop, server, protocol_factory):
        self._loop, self._server, self._factory = loop, server, protocol_factory
        self._is_stream = server.type != SOCK_DGRAM
        self._transports, self._waiters = set(), []
        self._timer = self._forever = None
        self._is_serving = self._is_resting = False
        server.setblocking(False)
        self._descriptor = server.fileno()

    def _accept(self):
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _ = self._server.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_ROOM:
                    return self._report("a connection cannot be accepted", error)
                # The listener stays ready: without a pause the loop would do nothing else.
                self._report("the system has no room for another connection", error)
                self._loop.remove_reader(self._descriptor)
                self._loop.call_later(ACCEPT_RETRY_DELAY, self._resume)
                self._is_resting = True
                return
            try:
                Transport(self._loop, connection, self._factory(), self._is_stream, self)
            except Exception as error:
                connection.close()
                self._report("a connection cannot be served", error)

    def _report(self, message, error):
        self._loop.call_exception_handler({"message": message, "exception": error, "socket": self._server})

    def _resume(self):
        self._is_resting = False
        if self._is_serving:
            self._loop.add_reader(self._descriptor, self._accept)
            self._accept()

    def _look(self):
        self._timer = self._loop.call_later(CALL_EVERY, self._look)
        if not self._is_resting:
            self._accept()

    def _attach(self, transport):
        self._transports.add(transport)

    def _detach(self, transport):
        self._transports.discard(transport)
        self._wake()

    def _wake(self):
        if self._descriptor < 0 and not self._transports:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters.clear()

    @property
    def sockets(self):
        """The listening socket; empty once the server is closed."""
        return () if self._descriptor < 0 else (self._server,)

    def getsockname(self):
        """The address of this end."""
        return self._server.getsockname()

    def get_loop(self):
        """The event loop."""
        return self._loop

    def is_serving(self):
        """True if the server accepts connections."""
        return self._is_serving

    async def start_serving(self):
        """Starts to accept connections. Does nothing if the server accepts already."""
        self._start()
        await asyncio.sleep(0)

    def _start(self):
        if self._descriptor < 0:
            raise RuntimeError(f"server {self!r} is closed")
        if not self._is_serving:
            self._is_serving = True
            self._loop.add_reader(self._descriptor, self._accept)
            # The descriptor of a listener for datagrams does not report earlier ones again.
            self._loop.call_soon(self._resume)
            if not self._is_stream:
                self._timer = self._loop.call_later(CALL_EVERY, self._look)

    async def serve_forever(self):
        """Accepts connections until the call is cancelled, which closes the server."""
        if self._forever is not None:
            raise RuntimeError(f"server {self!r} is already being awaited on serve_forever()")
        self._start()
        self._forever = self._loop.create_future()
        try:
            await self._forever
        except asyncio.CancelledError:
            try:
                self.close()
                await self.wait_closed()
            finally:
                raise
        finally:
            self._forever = None

    def close(self):
        """Stops accepting. Open connections continue."""
        if self._descriptor >= 0:
            self._is_serving = False
            if self._timer is not None:
                self._timer.cancel()
            self._loop.remove_reader(self._descriptor)
            self._descriptor = -1
            self._server.close()
            if self._forever is not None and not self._forever.done():
                self._forever.cancel()
            self._wake()

    def close_clients(self):
        """Closes the server's connections after all waiting bytes are sent."""
        for transport in list(self._transports):
            transport.close()

    def abort_clients(self):
        """Closes the server's connections at once."""
        for transport in list(self._transports):
            transport.abort()

    async def wait_closed(self):
        """Waits until the server is closed and its connections have ended."""
        if self._descriptor >= 0 or self._transports:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()
        await self.wait_closed()


async def create_server_endpoint(
        protocol_factory, address, spec=None, *, type=SOCK_STREAM, start_serving=True, **options):
    """Listens, as `loop.create_server` does: each connection gets a protocol. With SOCK_DGRAM it is an asyncio.DatagramProtocol, whose
    transport sends to its own peer alone."""
    from . import socket

    server = await _in_thread(lambda: socket.create_server(address, spec, type=type, **options))
    listening = AsyncServer(asyncio.get_running_loop(), server, protocol_factory)
    if start_serving:
        await listening.start_serving()
    return listening


async def start_server(client_connected_cb, address, spec=None, *, limit=65536, type=SOCK_STREAM, **options):
    """Listens, and calls `client_connected_cb(reader, writer)` for each connection, as `asyncio.start_server` does. With SOCK_DGRAM they are a
    DatagramReader and a DatagramWriter."""
    loop = asyncio.get_running_loop()

    def protocol():
        if type == SOCK_DGRAM:
            return _DatagramStream(loop, client_connected_cb)
        reader = asyncio.StreamReader(limit=limit, loop=loop)
        return asyncio.StreamReaderProtocol(reader, client_connected_cb, loop=loop)

    return await create_server_endpoint(protocol, address, spec, type=type, **options)
