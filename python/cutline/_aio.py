"""QoS sockets in asyncio: transports that work with any asyncio.Protocol, and with its streams."""

import asyncio
import errno
from collections import deque
from socket import SOCK_DGRAM, SOCK_STREAM

HIGH_WATER = 65536


class Transport(asyncio.Transport):
    """A connection in an event loop. The connection itself is `get_extra_info("connection")`: its MIB, its events."""

    def __init__(self, loop, connection, protocol, is_stream):
        super().__init__({"connection": connection, "peername": connection.getpeername(),
                          "sockname": connection.getsockname()})
        self._loop, self._connection, self._protocol, self._is_stream = loop, connection, protocol, is_stream
        self._waiting, self._size = deque(), 0
        self._is_closing = self._is_paused = self._has_paused = self._ends = False
        connection.setblocking(False)
        self._descriptor = connection.fileno()
        protocol.connection_made(self)
        loop.add_reader(self._descriptor, self._read)
        # What came before is no news to the descriptor.
        loop.call_soon(self._read)

    def _read(self):
        while not (self._is_closing or self._is_paused):
            try:
                data = self._connection.recv(65536)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                return self._end(error)
            if not self._is_stream:
                self._protocol.datagram_received(data, self._connection.getpeername())
            elif data:
                self._protocol.data_received(data)
            else:
                self._loop.remove_reader(self._descriptor)
                if not self._protocol.eof_received():
                    self.close()
                return

    def write(self, data):
        """Sends, now or when there is room."""
        if self._is_closing or (self._is_stream and not data):
            return
        self._waiting.append(bytes(data))
        self._size += len(data)
        if len(self._waiting) == 1:
            self._loop.add_writer(self._descriptor, self._write)
            self._write()
        if self._size > HIGH_WATER and not self._has_paused:
            self._has_paused = True
            self._protocol.pause_writing()

    def sendto(self, data, addr=None):
        """Sends a datagram to the other end."""
        self.write(data)

    def _write(self):
        while self._waiting:
            data = self._waiting.popleft()
            try:
                sent = self._connection.send(data)
            except (BlockingIOError, InterruptedError):
                self._waiting.appendleft(data)
                if not self._is_stream:
                    # It waits for its turn rather than for room, which the descriptor does not show.
                    self._loop.remove_writer(self._descriptor)
                    self._loop.call_later(0.001, self._write)
                break
            except OSError as error:
                if self._is_stream or error.errno != errno.ENOBUFS:
                    return self._end(error)
                # The interface's queue has no room for this datagram. It is lost, as it would be with a plain socket.
                self._protocol.error_received(error)
            self._size -= sent if self._is_stream else len(data)
            if self._is_stream and sent < len(data):
                self._waiting.appendleft(data[sent:])
        if self._has_paused and self._size <= HIGH_WATER // 4:
            self._has_paused = False
            self._protocol.resume_writing()
        if not self._waiting and self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            if self._is_closing:
                self._end(None)
            elif self._ends:
                self._connection.shutdown(1)

    def can_write_eof(self):
        """Streams can end one direction."""
        return self._is_stream

    def write_eof(self):
        """Ends this end's direction when all is sent."""
        self._ends = True
        if not self._waiting:
            self._connection.shutdown(1)

    def get_write_buffer_size(self):
        """Bytes that wait."""
        return self._size

    def set_protocol(self, protocol):
        """Sets who is told."""
        self._protocol = protocol

    def get_protocol(self):
        """Who is told."""
        return self._protocol

    def pause_reading(self):
        """Receives no more for now."""
        if not self._is_paused:
            self._is_paused = True
            self._loop.remove_reader(self._descriptor)

    def resume_reading(self):
        """Receives again."""
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            self._loop.add_reader(self._descriptor, self._read)
            self._loop.call_soon(self._read)

    def is_reading(self):
        """Whether it receives."""
        return not (self._is_paused or self._is_closing)

    def is_closing(self):
        """Whether it is closed or will be."""
        return self._is_closing

    def close(self):
        """Closes when all is sent."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.remove_reader(self._descriptor)
            if not self._waiting:
                self._end(None)

    def abort(self):
        """Closes at once."""
        self._end(None)

    def _end(self, error):
        self._is_closing = True
        self._waiting.clear()
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._loop.remove_writer(self._descriptor)
            self._descriptor = -1
            self._loop.call_soon(self._lost, error)

    def _lost(self, error):
        self._protocol.connection_lost(error)
        self._connection.close()


async def create_endpoint(protocol_factory, address, spec=None, *, type=SOCK_STREAM, **options):
    """Connects, as `loop.create_connection` does. With SOCK_DGRAM the protocol is an asyncio.DatagramProtocol."""
    from . import socket

    connection = await asyncio.to_thread(socket.create_connection, address, spec, type=type, **options)
    protocol = protocol_factory()
    loop = asyncio.get_running_loop()
    return Transport(loop, connection, protocol, type != SOCK_DGRAM), protocol


async def open_connection(address, spec=None, *, limit=65536, **options):
    """Connects a stream. Returns an asyncio.StreamReader and an asyncio.StreamWriter."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    transport, protocol = await create_endpoint(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), address, spec, **options)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class AsyncServer:
    """A listening stream in an event loop. It closes with `close`, or as a context manager."""

    def __init__(self, loop, server, client_connected, limit):
        self._loop, self._server, self._connected, self._limit = loop, server, client_connected, limit
        server.setblocking(False)
        self._descriptor = server.fileno()
        loop.add_reader(self._descriptor, self._accept)

    def _accept(self):
        try:
            connection, _ = self._server.accept()
        except OSError:
            return
        reader = asyncio.StreamReader(limit=self._limit, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, self._connected, loop=self._loop)
        Transport(self._loop, connection, protocol, True)

    def getsockname(self):
        """The address of this end."""
        return self._server.getsockname()

    def close(self):
        """Accepts no more."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._descriptor = -1
            self._server.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()


async def start_server(client_connected, address, spec=None, *, limit=65536, **options):
    """Listens, and calls `client_connected(reader, writer)` for each stream, as `asyncio.start_server` does."""
    from . import socket

    server = await asyncio.to_thread(socket.create_server, address, spec, **options)
    return AsyncServer(asyncio.get_running_loop(), server, client_connected, limit)
