"""Sockets with quality of service: an application states its requirements on a connection, and gets reports of the delivery.

    import cutline.socket

    with cutline.socket.create_connection(("192.0.2.1", 5004), spec="video") as connection:
        connection.sendall(frame)
        print(connection.mib.send.last.rate)
        for event in connection.events():
            print(event.text)

The calls are those of the standard library's `socket`. With a plain socket at the peer, this one is a plain socket on the wire,
too. A specification is the name of a class of applications, a mapping, or the text of a specification file.
"""

import errno
import io
import json
import math
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, AF_PACKET, SHUT_RD, SHUT_RDWR, SHUT_WR, SOCK_DGRAM, SOCK_STREAM, getdefaulttimeout
from types import SimpleNamespace

from ._aio import (
    AsyncServer, DatagramReader, DatagramWriter, Transport, create_endpoint, create_server_endpoint, open_connection,
    start_server,
)
from ._native import (
    GRANT_STATES, KINDS, MEASURES, ORIGINS, PARAMETERS, REASONS, RESERVATION_KINDS, TRAFFIC_DIRECTIONS, Socket, ThreadProtection,
)
from .errors import Lost, NoPeer, OptionError, Refused

__all__ = [
    "AsyncServer", "Connection", "DatagramReader", "DatagramWriter", "Event", "Lost", "NoPeer", "OptionError", "Refused",
    "ReservationEvent", "Server", "SHUT_RD", "SHUT_RDWR", "SHUT_WR", "SOCK_DGRAM", "SOCK_STREAM", "Transport",
    "create_connection", "create_endpoint", "create_server", "create_server_endpoint", "open_connection", "protected_thread",
    "start_server",
]


@dataclass(frozen=True)
class Event:
    """An event of a connection. Attributes that do not belong to its kind are None."""

    kind: str
    """agreed, refused, one-sided, violated, restored, hint, rate, requested, lost, recovered, gave-up, allocated or
    unallocated."""
    text: str
    """The event as text."""
    direction: str | None = None
    """Direction of a violation: send or receive."""
    measure: str | None = None
    """Measure of a violation: rate, delay, gap, jitter, loss or recovery."""
    limit: float | None = None
    """The worst acceptable value: messages/s, ms or per cent."""
    measured: float | None = None
    """The measured value of the last interval, in the same unit."""
    hint: int | None = None
    """The hint of packets from now on, 1 to 16."""
    rate: float | None = None
    """The rate at which to send from now on, messages/s."""
    sent: int | None = None
    """Number of whole messages sent over a connection that is lost."""
    reported: int | None = None
    """Number of these messages that the peer has reported as received. It may have received more."""
    is_new: bool | None = None
    """True if a connection that works again is a new one."""
    after: float | None = None
    """Duration of the interruption, or of the attempts to connect again, s."""
    worst: float | None = None
    """The worst value of a violation, in the unit of the limit."""
    origin: str | None = None
    """Origin of a violation: "sending-host" held its application back, the application at the "receiving-host" did not read, or the
    "network"."""
    allocated_bps: int | None = None
    """The rate that the resource manager of the host lets this end send from now on, without headers, bit/s."""

    @classmethod
    def _from(cls, found):
        numbers, text = json.loads(found[0]), found[1]
        kind = KINDS[numbers["kind"]]
        if kind in ("violated", "restored"):
            return cls(kind, text, TRAFFIC_DIRECTIONS[numbers["direction"]], MEASURES[numbers["measure"]], numbers["limit"],
                       numbers["measured"], worst=numbers["worst"], origin=ORIGINS[numbers["origin"]])
        if kind in ("hint", "rate"):
            return cls(kind, text, **{kind: numbers[kind]})
        if kind == "lost":
            return cls(kind, text, sent=numbers["sent"], reported=numbers["reported"])
        if kind == "recovered":
            return cls(kind, text, is_new=bool(numbers["is_new"]), after=numbers["after_ns"] / 1e9)
        if kind == "gave-up":
            return cls(kind, text, after=numbers["after_ns"] / 1e9)
        if kind == "allocated":
            return cls(kind, text, allocated_bps=numbers["allocated_bps"])
        return cls(kind, text)


@dataclass(frozen=True)
class ReservationEvent:
    """An event of a reservation. Attributes that do not belong to its kind are None."""

    kind: str
    """granted, changed, confirmed or lost."""
    direction: str
    """The direction: send or receive."""
    text: str
    """The event as text."""
    reserved: SimpleNamespace | None = None
    """The token bucket of a direction that is granted or changed: rate_bps, bucket_bytes, peak_bps, min_policed_bytes,
    max_packet_bytes."""
    refusal: SimpleNamespace | None = None
    """The refusal of a direction that is lost: reason, available_bps (the rate that would be granted), node, text."""
    node: str | None = None
    """The address of the node that confirmed the reservation."""

    @classmethod
    def _from(cls, found):
        found = json.loads(found)
        return cls(RESERVATION_KINDS[found["kind"]], TRAFFIC_DIRECTIONS[found["direction"]], found["text"],
                   _plain(_bucket(found["reserved"])), _plain(_refusal(found["refusal"])), found["node"] or None)


def _bucket(found):
    """A token bucket; None if there is none."""
    return found if found["rate_bps"] >= 0 else None


def _refusal(found):
    """Reason of a refusal; None if nothing was refused."""
    reason = REASONS[found["reason"]]
    return None if reason == "none" else found | {"reason": reason, "node": found["node"] or None}


def _reservation(found):
    """The network's reservations; None without a service."""
    if not found["service"]:
        return None
    for direction in ("send", "receive"):
        of = found[direction]
        found[direction] = {"state": GRANT_STATES[of["state"]], "requested": _bucket(of["requested"]),
                       "reserved": _bucket(of["reserved"]), "refusal": _refusal(of["refusal"])}
    return found


def _scheduling(found):
    """Messages and their deadlines; None for a stream, and without a share."""
    return found if found["sent"] >= 0 else None


def _plain(value):
    """Times in seconds rather than nanoseconds; None for unknown values."""
    if not isinstance(value, dict):
        return value
    fields = {}
    for name, field in value.items():
        if name.endswith("_ns"):
            is_known = name == "clock_offset_ns" or field != -1
            fields[name.removesuffix("_ns")] = field / 1e9 if is_known else None
        elif name == "violations":
            fields[name] = dict(zip(MEASURES, field))
        elif name == "violated":
            fields[name] = _names(MEASURES, field) if isinstance(field, int) else field
        elif name == "coerced":
            fields[name] = _names(PARAMETERS, field)
        elif name == "operation":
            fields[name] = dict(zip(MEASURES, map(_plain, field)))
        else:
            fields[name] = None if field == -1 and name != "lost" else _plain(field)
    return SimpleNamespace(**fields)


def _names(names, bits):
    """The names whose bits are set."""
    return {name.replace("-", "_") for place, name in enumerate(names) if bits >> place & 1}


def _mib(found):
    """The state of a connection. C has the values of a direction in two structs, because structs inside the MIB do not grow."""
    for direction in ("send", "receive"):
        found[direction] |= found.pop(f"{direction}_details")
    found["reservation"] = _reservation(found["reservation"])
    found["scheduling"] = _scheduling(found["scheduling"])
    return _plain(found)


def _document(spec):
    """A specification as the text of a file: a class, a mapping, or such a text."""
    if spec is None:
        return ""
    if isinstance(spec, Mapping):
        return json.dumps(dict(spec), default=_as_dict)
    if not isinstance(spec, str):
        raise TypeError(f"spec: expected the name of a class, a mapping or a text, not {type(spec).__name__}")
    is_class = spec.replace("-", "").isalnum()
    return f"class = {json.dumps(spec)}" if is_class else spec


def _as_dict(value):
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"spec: {value!r} is no value of a specification")


def _text(value):
    return json.dumps(value) if isinstance(value, (bool, list, tuple)) else str(value)


_DEFAULT = object()
"""The timeout of a call without one: that of `socket.setdefaulttimeout`."""


def _timeout(seconds):
    seconds = getdefaulttimeout() if seconds is _DEFAULT else seconds
    if seconds is not None:
        # A text is no number.
        seconds = math.ldexp(seconds, 0)
        if not seconds >= 0:
            raise ValueError("Timeout value out of range")
    return seconds


def _address(found):
    """An address as `socket` has it; for IPv6 with flow label and zone."""
    host, port, more = found
    return (host, port) if more is None else (host, port, *more)


def _no_flags(flags):
    if flags:
        raise ValueError(f"flags = {flags}: allowed is 0")


def _bytes(data):
    """The bytes of an object with the buffer interface."""
    return data if type(data) is bytes else bytes(memoryview(data))


def _arguments(type, address, spec, options, key, timeout=None):
    if type not in (SOCK_STREAM, SOCK_DGRAM):
        raise ValueError(f"type = {type}: allowed are SOCK_STREAM and SOCK_DGRAM")
    if len(address) not in (2, 3, 4):
        raise TypeError(f"address = {address!r}: expected (host, port), or (host, port, flow label, zone) of IPv6")
    host, port, *more = address
    if len(more) == 2 and more[1] and "%" not in host:
        host = f"{host}%{more[1]}"
    # As with a plain server, no host is every address.
    place = (host or "0.0.0.0", port)
    settings = [(name, _text(value)) for name, value in (options or {}).items()]
    if timeout and "connect-timeout" not in (options or {}):
        settings.append(("connect-timeout", f"{timeout:.9f} s"))
    return type == SOCK_DGRAM, place, _document(spec), settings, key


def create_connection(address, spec=None, *, type=SOCK_STREAM, options=None, key=None, timeout=_DEFAULT):
    """Connects to (host, port), and negotiates with the QoS socket there. All addresses of the host are tried. A link-local address has
    its interface: ("fe80::1%eth0", 80), or ("fe80::1", 80, 0, 2). Datagrams in frames below IP have an interface of this host, and the link
    address and the port of the peer: ("direct:eth0/02:00:00:00:00:01", 7000). Both processes need CAP_NET_RAW for them.

    `options` are set by name: {"send.max-delay": "150 ms", "peer": "speaks"}. `timeout` bounds
    connecting, except the look-up of the name, and each later call on the connection, except the sending
    of datagrams, for which the option `pacing` decides whether it waits for the agreed rate.
    """
    timeout = _timeout(timeout)
    if timeout == 0:
        raise BlockingIOError(errno.EINPROGRESS, "connecting waits: a timeout above 0 is needed, or asyncio's open_connection")
    connection = Connection(Socket.open(False, *_arguments(type, address, spec, options, key, timeout)))
    connection.settimeout(timeout)
    return connection


def create_server(address, spec=None, *, type=SOCK_STREAM, options=None, key=None):
    """Listens at (host, port), for datagrams in frames below IP at ("direct:eth0", port). Datagram connections are accepted like
    streams."""
    return Server(Socket.open(True, *_arguments(type, address, spec, options, key)))


@contextmanager
def protected_thread(priority="highest"):
    """Protects the calling thread from the other work of its processor:

        with cutline.socket.protected_thread():
            while message := connection.recv(65536):
                show(message)

    It runs before normal threads, and so does the library's own thread meanwhile. `priority` is "real-time" (SCHED_RR), "nice" (-10), or
    the highest of both that the process may have, and the result of `with` says which one it is. Threads and processes that the thread
    starts are not protected. When the block is left, also by an exception, the priority is as before.

    It is for threads that receive and do a bounded amount of work for each message: one that computes without waiting delays all other
    work of its processor. In asyncio it protects the thread of the loop, with all of its tasks. PermissionError without CAP_SYS_NICE or a
    limit that allows it; RuntimeError if the thread is protected already, or if another thread leaves the block, where it remains protected
    until its end.
    """
    protection = ThreadProtection.begin(priority)
    try:
        yield protection.priority()
    finally:
        protection.end()


class _Base:
    _timeout = None

    def __init__(self, native):
        self._socket = native

    @property
    def _native(self):
        if self._socket is None:
            raise OSError(9, "the socket is closed")
        return self._socket

    def fileno(self):
        """The descriptor to wait for; -1 once the socket is closed. Call `pending` before waiting."""
        return -1 if self._socket is None else self._socket.fileno()

    def getsockname(self):
        """The address of this end: (host, port), of IPv6 also the flow label and the zone. The host of frames below IP is such as
        "direct:eth0/02:00:00:00:00:01"."""
        return _address(self._native.addresses()[0])

    @property
    def family(self):
        """AF_INET or AF_INET6; AF_PACKET for frames below IP."""
        host, _, more = self._native.addresses()[0]
        if host.startswith("direct:"):
            return AF_PACKET
        return AF_INET if more is None else AF_INET6

    @property
    def type(self):
        """SOCK_STREAM or SOCK_DGRAM."""
        return SOCK_DGRAM if self._native.datagrams() else SOCK_STREAM

    @property
    def proto(self):
        """0: the protocol follows from the type."""
        return 0

    @property
    def timeout(self):
        """Longest wait of calls, s; None is without a limit."""
        return self._timeout

    def gettimeout(self):
        """Longest wait of calls, s; None is without a limit."""
        return self._timeout

    def settimeout(self, value):
        """Sets the longest wait of calls, s; None is without a limit, and with 0 calls do not wait. Sending a datagram waits for the
        agreed rate with every timeout except 0."""
        value = _timeout(value)
        self._set_timeout(value)
        self._timeout = value

    def setblocking(self, flag):
        """Sets the mode of the socket: calls wait, or fail where they would wait."""
        self.settimeout(None if flag else 0.0)

    def getblocking(self):
        """True if calls wait."""
        return self._timeout != 0

    def close(self):
        """Closes the socket, when calls of other threads have returned."""
        self._socket = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Server(_Base):
    """A listening socket."""

    def __init__(self, native):
        super().__init__(native)
        # A call that waits does so in slices, so that it can be interrupted.
        native.set_nonblocking(True)

    def _set_timeout(self, value):
        self._native.fileno()

    def accept(self):
        """Waits for the next connection. Returns it and the address of its peer."""
        connection = Connection(self._native.accept(self._timeout))
        if getdefaulttimeout() is not None:
            connection.settimeout(getdefaulttimeout())
        return connection, connection.getpeername()


class Connection(_Base):
    """A connected socket."""

    _files = 0
    """Number of open files of `makefile`."""
    _is_closing = False
    """True once the application has closed the socket, which its files still use."""

    def _set_timeout(self, value):
        self._native.set_nonblocking(value == 0)
        self._native.set_timeout(value or None)

    def send(self, data, flags=0):
        """Sends a message. Returns the number of accepted bytes."""
        _no_flags(flags)
        return self._waiting(self._native.send, _bytes(data), 0, self._timeout is None)

    def sendall(self, data, flags=0):
        """Sends all bytes."""
        _no_flags(flags)
        data, sent = _bytes(data), 0
        while sent < len(data):
            sent += self._waiting(self._native.send, data, sent, self._timeout is None)

    def recv(self, bufsize, flags=0):
        """Receives at most so many bytes of a stream, or a datagram; b"" at a stream's end."""
        _no_flags(flags)
        if bufsize < 0:
            raise ValueError("negative buffersize in recv")
        return self._waiting(self._native.recv, bufsize)

    def recv_into(self, buffer, nbytes=0, flags=0):
        """Receives into a buffer, at most so many bytes, or as many as fit. Returns the number of bytes."""
        if nbytes < 0:
            raise ValueError("negative buffersize in recv_into")
        place = memoryview(buffer).cast("B")
        if nbytes > len(place):
            raise ValueError("buffer too small for requested bytes")
        data = self.recv(nbytes or len(place), flags)
        place[:len(data)] = data
        return len(data)

    def _waiting(self, call, *arguments):
        try:
            return call(*arguments)
        except BlockingIOError:
            if self._timeout:
                raise TimeoutError("timed out") from None
            raise

    def makefile(self, mode="r", buffering=None, *, encoding=None, errors=None, newline=None):
        """A file of the stream, as `socket.makefile` makes one: modes "r", "w" and "rw", with "b" for bytes. Closing it leaves the
        connection open, and a connection that is closed stays open until its files are closed."""
        if not set(mode) <= {"r", "w", "b"}:
            raise ValueError(f"invalid mode {mode!r} (only r, w, b allowed)")
        writes = "w" in mode
        reads = "r" in mode or not writes
        raw = _Raw(self, reads, writes)
        if buffering == 0:
            if "b" not in mode:
                raise ValueError("unbuffered streams must be binary")
            return raw
        size = io.DEFAULT_BUFFER_SIZE if buffering is None or buffering < 0 else buffering
        if reads and writes:
            file = io.BufferedRWPair(raw, raw, size)
        else:
            file = io.BufferedReader(raw, size) if reads else io.BufferedWriter(raw, size)
        if "b" in mode:
            return file
        text = io.TextIOWrapper(file, io.text_encoding(encoding), errors, newline)
        text.mode = mode
        return text

    def getpeername(self):
        """The address of the peer."""
        return _address(self._native.addresses()[1])

    def shutdown(self, how):
        """Shuts down one direction of a stream, or both: SHUT_RD, SHUT_WR or SHUT_RDWR."""
        self._native.shutdown(how)

    @property
    def pending(self):
        """True if data has already been received; the descriptor does not show it."""
        return self._native.pending()

    @property
    def joining(self):
        """True while an accepted stream waits for the first bytes of its peer; until then sending may wait.

        The descriptor does not show it: it is writable.
        """
        return self._native.joining()

    @property
    def has_qos_peer(self):
        """True if the peer is a QoS socket. An accepted stream waits until that is known, or for its timeout."""
        return self._waiting(self._native.has_qos_peer)

    @property
    def mib(self):
        """The state of the connection. Times are in seconds; unknown values are None.

        `reservation` is None without the option `service`. Otherwise it has the service and, for `send` and `receive`: state
        (not-requested, pending, reserved or failed), the token buckets requested and reserved, and refusal with reason, node,
        available_bps (the rate that would be granted) and text.

        `scheduling` is None for a stream and without the option `allocation`. Otherwise it has the messages sent, how many of them
        left after their deadlines (`missed`), and the longest time by which one was late (`latest`).
        """
        return _mib(json.loads(self._native.mib()))

    def events(self, timeout=0.0):
        """Yields the events that were not taken yet, and waits so many seconds for each."""
        while (found := self._native.event(timeout)) is not None:
            yield Event._from(found)

    def reservation_events(self):
        """Yields the events of the reservation that were not taken yet. Does not wait."""
        while (found := self._native.reservation_event()) is not None:
            yield ReservationEvent._from(found)

    def on_event(self, handler):
        """Sets `handler(event)`, which is called with each event, first with those that were not taken yet; None removes it.

        A thread of the library calls it, so it should return soon. Its exceptions go to sys.unraisablehook. Events can be taken
        with `events`, too. When this call returns, an earlier handler no longer runs, unless the handler itself made the call.
        """
        self._native.on_event(handler and (lambda *found: handler(Event._from(found))))

    def close(self):
        """Closes the socket, when calls of other threads have returned and the files of `makefile` are closed. A handler is no longer
        called."""
        if self._socket is not None:
            self._socket.on_event(None)
        self._is_closing = True
        if self._files == 0:
            super().close()

    def _file_closed(self):
        self._files -= 1
        if self._is_closing and self._files == 0:
            super().close()

    def renegotiate(self, spec, options=None):
        """Requests another specification from the peer. The outcome is an event."""
        settings = [(name, _text(value)) for name, value in (options or {}).items()]
        self._native.renegotiate(_document(spec), settings)


class _Raw(io.RawIOBase):
    def __init__(self, connection, reads, writes):
        self._connection, self._reads, self._writes = connection, reads, writes
        connection._files += 1

    def close(self):
        """Closes the file; the last one also closes a connection that the application has closed."""
        if not self.closed:
            super().close()
            self._connection._file_closed()

    def readable(self):
        return self._reads

    def writable(self):
        return self._writes

    def fileno(self):
        return self._connection.fileno()

    def readinto(self, buffer):
        try:
            return self._connection.recv_into(buffer)
        except BlockingIOError:
            return None

    def write(self, data):
        try:
            return self._connection.send(data)
        except BlockingIOError:
            return None
