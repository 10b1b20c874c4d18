import array
import io
import mmap
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from socket import SHUT_RD as SHUT_RD, SHUT_RDWR as SHUT_RDWR, SHUT_WR as SHUT_WR, SocketKind
from types import SimpleNamespace
from typing import Any, Final, Literal, Self, overload

from ._aio import (
    AsyncServer as AsyncServer, DatagramReader as DatagramReader, DatagramWriter as DatagramWriter,
    Transport as Transport, create_endpoint as create_endpoint, create_server_endpoint as create_server_endpoint,
    open_connection as open_connection, start_server as start_server,
)
from .errors import Lost as Lost, NoPeer as NoPeer, OptionError as OptionError, Refused as Refused

__all__ = [
    "AsyncServer", "Connection", "DatagramReader", "DatagramWriter", "Event", "Lost", "NoPeer", "OptionError", "Refused",
    "ReservationEvent", "Server", "SHUT_RD", "SHUT_RDWR", "SHUT_WR", "SOCK_DGRAM", "SOCK_STREAM", "Transport",
    "create_connection", "create_endpoint", "create_server", "create_server_endpoint", "open_connection", "protected_thread",
    "start_server",
]

SOCK_STREAM: Final = SocketKind.SOCK_STREAM
SOCK_DGRAM: Final = SocketKind.SOCK_DGRAM

_Address = tuple[str, int] | tuple[str, int, int] | tuple[str, int, int, int]
_Buffer = bytes | bytearray | memoryview | array.array[Any] | mmap.mmap
_WriteableBuffer = bytearray | memoryview | array.array[Any] | mmap.mmap
_Spec = str | Mapping[str, Any] | None
_Options = Mapping[str, Any] | None

@dataclass(frozen=True)
class Event:
    kind: str
    text: str
    direction: str | None = None
    measure: str | None = None
    limit: float | None = None
    measured: float | None = None
    hint: int | None = None
    rate: float | None = None
    sent: int | None = None
    reported: int | None = None
    is_new: bool | None = None
    after: float | None = None
    worst: float | None = None
    origin: str | None = None
    allocated_bps: int | None = None

@dataclass(frozen=True)
class ReservationEvent:
    kind: str
    direction: str
    text: str
    reserved: SimpleNamespace | None = None
    refusal: SimpleNamespace | None = None
    node: str | None = None

class _Base:
    def __init__(self, native: Any) -> None: ...
    @property
    def family(self) -> int: ...
    @property
    def type(self) -> int: ...
    @property
    def proto(self) -> int: ...
    @property
    def timeout(self) -> float | None: ...
    def fileno(self) -> int: ...
    def getsockname(self) -> Any: ...
    def gettimeout(self) -> float | None: ...
    def settimeout(self, value: float | None) -> None: ...
    def getblocking(self) -> bool: ...
    def setblocking(self, flag: bool) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...

class Server(_Base):
    def accept(self) -> tuple[Connection, Any]: ...

class Connection(_Base):
    def send(self, data: _Buffer, flags: int = 0) -> int: ...
    def sendall(self, data: _Buffer, flags: int = 0) -> None: ...
    def recv(self, bufsize: int, flags: int = 0) -> bytes: ...
    def recv_into(self, buffer: _WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int: ...
    @overload
    def makefile(
        self, mode: Literal["b", "rb", "br"], buffering: int | None = None, *, encoding: str | None = None,
        errors: str | None = None, newline: str | None = None,
    ) -> io.BufferedReader: ...
    @overload
    def makefile(
        self, mode: Literal["wb", "bw"], buffering: int | None = None, *, encoding: str | None = None,
        errors: str | None = None, newline: str | None = None,
    ) -> io.BufferedWriter: ...
    @overload
    def makefile(
        self, mode: Literal["rwb", "rbw", "wrb", "wbr", "brw", "bwr"], buffering: int | None = None, *,
        encoding: str | None = None, errors: str | None = None, newline: str | None = None,
    ) -> io.BufferedRWPair: ...
    @overload
    def makefile(
        self, mode: Literal["r", "w", "rw", "wr", ""] = "r", buffering: int | None = None, *,
        encoding: str | None = None, errors: str | None = None, newline: str | None = None,
    ) -> io.TextIOWrapper: ...
    def getpeername(self) -> Any: ...
    def shutdown(self, how: int) -> None: ...
    @property
    def pending(self) -> bool: ...
    @property
    def joining(self) -> bool: ...
    @property
    def has_qos_peer(self) -> bool: ...
    @property
    def mib(self) -> SimpleNamespace: ...
    def events(self, timeout: float = 0.0) -> Iterator[Event]: ...
    def reservation_events(self) -> Iterator[ReservationEvent]: ...
    def on_event(self, handler: Callable[[Event], object] | None) -> None: ...
    def renegotiate(self, spec: _Spec, options: _Options = None) -> None: ...

def create_connection(
    address: _Address, spec: _Spec = None, *, type: int = ..., options: _Options = None, key: bytes | None = None,
    timeout: float | None = ...,
) -> Connection: ...
def create_server(
    address: _Address, spec: _Spec = None, *, type: int = ..., options: _Options = None, key: bytes | None = None,
) -> Server: ...
@contextmanager
def protected_thread(
    priority: Literal["highest", "real-time", "nice"] = "highest",
) -> Generator[Literal["real-time", "nice"], None, None]: ...
