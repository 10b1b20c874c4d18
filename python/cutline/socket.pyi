import asyncio
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from socket import SHUT_RD as SHUT_RD, SHUT_RDWR as SHUT_RDWR, SHUT_WR as SHUT_WR
from socket import SOCK_DGRAM as SOCK_DGRAM, SOCK_STREAM as SOCK_STREAM
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from . import Lost as Lost, NoPeer as NoPeer, OptionError as OptionError, Refused as Refused
from ._aio import AsyncServer, Transport

Address = tuple[str, int]
Spec = str | Mapping[str, Any] | None
Options = Mapping[str, Any] | None

@dataclass(frozen=True)
class Event:
    kind: str
    text: str
    side: str | None = None
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
    place: str | None = None

@dataclass(frozen=True)
class ReservationEvent:
    kind: str
    side: str
    text: str
    reserved: SimpleNamespace | None = None
    refusal: SimpleNamespace | None = None
    node: str | None = None

class _Base:
    def fileno(self) -> int: ...
    def getsockname(self) -> Address: ...
    def setblocking(self, flag: bool) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Server(_Base):
    def accept(self) -> tuple[Connection, Address]: ...

class Connection(_Base):
    def send(self, data: bytes) -> int: ...
    def sendall(self, data: bytes | bytearray | memoryview) -> None: ...
    def recv(self, bufsize: int) -> bytes: ...
    def makefile(self, mode: str = "rb") -> io.BufferedIOBase: ...
    def settimeout(self, seconds: float | None) -> None: ...
    def gettimeout(self) -> float | None: ...
    def getpeername(self) -> Address: ...
    def shutdown(self, how: int) -> None: ...
    @property
    def pending(self) -> bool: ...
    @property
    def has_qos_peer(self) -> bool: ...
    @property
    def mib(self) -> SimpleNamespace: ...
    def events(self, timeout: float = 0.0) -> Iterator[Event]: ...
    def reservation_events(self) -> Iterator[ReservationEvent]: ...
    def on_event(self, handler: Callable[[Event], object] | None) -> None: ...
    def renegotiate(self, spec: Spec, options: Options = None) -> None: ...

def create_connection(
    address: Address, spec: Spec = None, *, type: int = ..., options: Options = None, key: bytes | None = None,
    timeout: float | None = None,
) -> Connection: ...
def create_server(
    address: Address, spec: Spec = None, *, type: int = ..., options: Options = None, key: bytes | None = None,
) -> Server: ...
async def create_endpoint(
    protocol_factory: Callable[[], asyncio.BaseProtocol], address: Address, spec: Spec = None, *, type: int = ...,
    options: Options = None, key: bytes | None = None,
) -> tuple[Transport, asyncio.BaseProtocol]: ...
async def open_connection(
    address: Address, spec: Spec = None, *, limit: int = 65536, options: Options = None, key: bytes | None = None,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]: ...
async def start_server(
    client_connected: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any], address: Address,
    spec: Spec = None, *, limit: int = 65536, options: Options = None, key: bytes | None = None,
) -> AsyncServer: ...
