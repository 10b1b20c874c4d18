"""Queue laws, sources of traffic and congestion controls in Python, which scenarios use by name as they use those of the simulator.

    from cutline.extend import Count, Law, register

    @register
    class Ramp(Law):
        '''Drops in proportion to the queue.'''

        name = "ramp"
        title = "Ramp"
        source = "an exercise"
        full = Count(200, least=1, most=10_000, unit="packets", source="an exercise", doc="Queue at which every packet is dropped.")

        def arrive(self, now, packet, backlog):
            return min(backlog.packets / self.full, 1.0)

A scenario then has `queue = { aqm = "ramp", full = 100 }`. The methods are those of the traits in Rust (`DropProbability`,
`TrafficSource`, `CongestionControl`), so that a class moves to Rust line by line (docs/guide/extend.md). `check` runs the conformance
suite that every algorithm of the simulator passes.

Times are seconds since the start of the simulation, rates bit/s, sizes bytes. Each queue, flow or connection has an object of its own,
and nothing that the objects share may change: runs are parallel, and results depend on the seed alone. A method that a class does not
define costs nothing. An exception ends the runs; `cutline.run` raises it.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, overload

from . import _native
from ._native import Acked, Acknowledgement, Backlog, Packet, Window
from ._queue import Queue
from .errors import ArgumentError

__all__ = [
    "Acked", "Acknowledgement", "Backlog", "Choice", "Control", "Count", "Extension", "Flag", "Law", "Number", "Packet", "Source",
    "Time", "Window", "check", "register", "registered",
]

_MOST_COUNT = 2**53

T = TypeVar("T")


class _Parameter:
    """A parameter of an extension: the attribute of the class has the allowed values, that of an object has the value."""

    kind: ClassVar[str]

    def __init__(self, default: Any, least: float, most: float, choices: Sequence[str], unit: str, source: str, doc: str) -> None:
        self.default: Any = default
        self.least: float = least
        self.most: float = most
        self.choices: list[str] = list(choices)
        self.unit: str = unit
        self.source: str = source
        self.doc: str = doc
        self.name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute: str = name
        self.name = name.replace("_", "-")

    def _get(self, owner: object) -> Any:
        return self if owner is None else owner.__dict__.get(self._attribute, self.default)

    def check(self) -> None:
        """Refuses an inconsistent description."""
        for part, found in (("unit", self.unit), ("source", self.source), ("doc", self.doc)):
            if not isinstance(found, str) or (part != "unit" and not found.strip()):
                raise ArgumentError(f"{self._attribute}: {part} = {found!r} is not allowed: expected a text", self._attribute)

    def check_value(self, found: Any) -> Any:
        """Returns a value if it is allowed."""
        number = found if isinstance(found, (int, float)) and not isinstance(found, bool) else math.nan
        for part, bound in (("least", self.least), ("most", self.most)):
            if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
                raise ArgumentError(f"{self._attribute}: {part} = {bound!r} is not allowed: expected a finite number", self._attribute)
        if not self.least <= number <= self.most:
            raise ArgumentError(
                f"{self._attribute}: {found!r} is not allowed: expected a number from {self.least} to {self.most}", self._attribute)
        return float(number)


class Number(_Parameter):
    """A number from `least` to `most`."""

    kind: ClassVar[str] = "number"

    def __init__(self, default: float, *, least: float, most: float, unit: str = "", source: str, doc: str) -> None:
        super().__init__(default, least, most, (), unit, source, doc)

    @overload
    def __get__(self, owner: None, of: type) -> Number: ...
    @overload
    def __get__(self, owner: object, of: type) -> float: ...
    def __get__(self, owner: object | None, of: type) -> Number | float:
        found: Number | float = self._get(owner)
        return found


class Count(_Parameter):
    """A whole number from `least` to `most`."""

    kind: ClassVar[str] = "count"

    def __init__(self, default: int, *, least: int, most: int, unit: str = "", source: str, doc: str) -> None:
        super().__init__(default, least, most, (), unit, source, doc)

    def check_value(self, found: Any) -> Any:
        for part, one in (("default", found), ("least", self.least), ("most", self.most)):
            if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one <= _MOST_COUNT:
                raise ArgumentError(
                    f"{self._attribute}: {part} = {one!r} is not allowed: expected a whole number from 0 to {_MOST_COUNT}", self._attribute)
        return super().check_value(found)

    @overload
    def __get__(self, owner: None, of: type) -> Count: ...
    @overload
    def __get__(self, owner: object, of: type) -> int: ...
    def __get__(self, owner: object | None, of: type) -> Count | int:
        found: Count | int = self._get(owner)
        return found


class Time(_Parameter):
    """A time from `least` to `most`, in seconds. Scenarios write it with its unit, such as `20 ms`."""

    kind: ClassVar[str] = "time"

    def __init__(self, default: float, *, least: float, most: float, source: str, doc: str) -> None:
        super().__init__(default, least, most, (), "", source, doc)

    def check_value(self, found: Any) -> Any:
        if not 0 <= self.least <= self.most <= 1e9:
            raise ArgumentError(
                f"{self._attribute}: from {self.least} to {self.most} is not allowed: expected times from 0 to 1e9 s", self._attribute)
        return super().check_value(found)

    @overload
    def __get__(self, owner: None, of: type) -> Time: ...
    @overload
    def __get__(self, owner: object, of: type) -> float: ...
    def __get__(self, owner: object | None, of: type) -> Time | float:
        found: Time | float = self._get(owner)
        return found


class Flag(_Parameter):
    """A flag: true or false."""

    kind: ClassVar[str] = "flag"

    def __init__(self, default: bool, *, source: str, doc: str) -> None:
        super().__init__(default, 0, 1, (), "", source, doc)

    def check_value(self, found: Any) -> Any:
        if not isinstance(found, bool):
            raise ArgumentError(f"{self._attribute}: {found!r} is not allowed: expected True or False", self._attribute)
        return found

    @overload
    def __get__(self, owner: None, of: type) -> Flag: ...
    @overload
    def __get__(self, owner: object, of: type) -> bool: ...
    def __get__(self, owner: object | None, of: type) -> Flag | bool:
        found: Flag | bool = self._get(owner)
        return found


class Choice(_Parameter):
    """One of several names in kebab-case."""

    kind: ClassVar[str] = "choice"

    def __init__(self, default: str, *, choices: Sequence[str], source: str, doc: str) -> None:
        super().__init__(default, 0, 1, choices, "", source, doc)

    def check_value(self, found: Any) -> Any:
        if not isinstance(found, str) or found not in self.choices:
            raise ArgumentError(
                f"{self._attribute}: {found!r} is not allowed: expected one of {', '.join(map(str, self.choices))}", self._attribute)
        return found

    @overload
    def __get__(self, owner: None, of: type) -> Choice: ...
    @overload
    def __get__(self, owner: object, of: type) -> str: ...
    def __get__(self, owner: object | None, of: type) -> Choice | str:
        found: Choice | str = self._get(owner)
        return found


class Extension:
    """The common part of the three kinds of extension."""

    name: ClassVar[str] = ""
    """The name in scenarios, in kebab-case."""
    title: ClassVar[str] = ""
    """The name in texts, such as headings."""
    source: ClassVar[str] = ""
    """The paper, the RFC, or another source."""

    @classmethod
    def _made(cls, values: dict[str, Any]) -> Extension:
        made = cls.__new__(cls)
        made.__dict__.update(values)
        return made


class Law(Extension):
    """A queue law: it returns the probability with which a packet is dropped or marked. The queue above it, a FIFO or TSQ, draws the packets.

    Only `arrive` is needed. `advance`, `probability`, `may_mark`, `readings`, `judged`, `departed`, `reorders`, `set_rate` and `reset` are
    called if the class defines them:

    - `advance(now, backlog)`: before every change of the backlog, which has been `backlog` since the last call. A law that samples at
      fixed times takes the samples that it has missed. It must be cheap after a long silence.
    - `probability()`: the probability for recording, or None; without it the last answer of `arrive`.
    - `may_mark()`: whether a packet that is hit may be marked instead of dropped.
    - `readings()`: a dict with `average` and `target` (packets) and `max_p` for recording.
    - `judged(now, packet, verdict, reason)`: the verdict on an arrival: "pass", "mark" or "drop".
    - `departed(now, size, arrived, backlog)`: a packet that came at `arrived` has left.
    - `reorders()`: once, if the queue does not serve in the order of arrival.
    - `set_rate(now, rate)`: the rate of the link has changed.
    - `reset(now)`: forgets everything, as a new law at `now`. If it is not defined, the queue creates a new object.
    """

    moderate: ClassVar[Mapping[str, Any]] = {}
    """Parameters with which `check` runs the law under TSQ: with them a queue of some 100 packets stands on a link of 15 Mbit/s, and 0.5
    to 50 % of the arrivals are hit. Those that are not named have their defaults."""

    rate: float
    """Rate of the link at the start, bit/s."""

    def begin(self) -> None:
        """Starts the law. The parameters and `rate` are set."""

    @classmethod
    def queue(cls, rate: str | float, **options: Any) -> Queue:
        """Returns a queue of this law, to step by hand. Options are those of the classes in `cutline.aqm`, and the law's parameters."""
        of_this_law: type[Queue] = type(cls.__name__, (Queue,), {"name": cls.name})
        return of_this_law(rate, **options)

    def arrive(self, now: float, packet: Packet, backlog: Backlog) -> float:
        """Returns the probability, 0 to 1, for a packet that arrives and finds `backlog`. Every arrival comes here."""
        raise NotImplementedError


class Source(Extension):
    """A source of traffic: it writes messages to the sender of its flow.

    `write` is called at the time in `deadline` and sets the next one. If a class waits until its bytes have arrived, it sets
    `waits_for_delivery` and defines `delivered(now, total)`: `total` bytes have arrived in order. It may set `deadline`, and returns
    None or, if a transfer is complete, the time of its start and its bytes.
    """

    waits_for_delivery: ClassVar[bool] = False
    """True if the source waits until every byte has arrived, and so needs a reliable transport."""
    endless: ClassVar[bool] = False
    """True if `write` returns math.inf, an unlimited supply of data, and so needs a transport that adapts its rate."""

    deadline: float | None
    """Time of the next write, seconds; None while there is nothing to write."""
    random: random.Random
    """Random numbers of this flow, which the seed of the run determines. Others must not be used."""

    def begin(self, now: float) -> None:
        """Starts the source. The parameters and `random` are set. It sets `deadline`."""
        raise NotImplementedError

    def write(self, now: float) -> float | None:
        """Returns the number of bytes that are written now, or None, and sets `deadline`. If that deadline is due, `write` is called again."""
        raise NotImplementedError


class Control(Extension):
    """A congestion control of TCP: it sets the window. The sender detects losses, and corrects windows that are not allowed.

    `avoid` and `congested` are needed. These are called if the class defines them:

    - `acknowledged(acknowledgement)`: new data was acknowledged, in any case.
    - `slow_start(window, acked, most)`: increases the window below its threshold, by at most `most`. Without it RFC 5681 eq. 2.
    - `marked(window, flight)`: as `congested`, after a mark; without it `congested` is called.
    - `timed_out()`: after a timeout.
    - `application_limited(now)`: new data was acknowledged while the application limited the sender.
    """

    scalable: ClassVar[bool] = False
    """True if the control responds to the share of marks, and not to each mark as to a loss (RFC 9330)."""

    mss: int
    """Maximum segment size, bytes."""

    def begin(self) -> None:
        """Starts the control of a connection. The parameters and `mss` are set."""

    def avoid(self, window: Window, acked: Acked) -> None:
        """Increases `window.cwnd` in congestion avoidance: new data was acknowledged, and the window limited the sender."""
        raise NotImplementedError

    def congested(self, window: Window, flight: int) -> float:
        """Returns the threshold after a loss with `flight` bytes outstanding. Does not set the window."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Description:
    """The description that the native module reads."""

    kind: str
    name: str
    title: str
    source: str
    parameters: list[Any]
    methods: list[str]
    waits_for_delivery: bool
    endless: bool
    scalable: bool
    moderate: list[tuple[str, Any]]


_KINDS: Mapping[str, tuple[type[Extension], tuple[str, ...], tuple[str, ...]]] = {
    "law": (Law, ("arrive",), (
        "advance", "probability", "may_mark", "readings", "judged", "departed", "reorders", "set_rate", "reset")),
    "source": (Source, ("begin", "write"), ("delivered",)),
    "control": (Control, ("avoid", "congested"), ("acknowledged", "slow_start", "marked", "timed_out", "application_limited")),
}

_REGISTERED: dict[tuple[str, str], type[Extension]] = {}

E = TypeVar("E", bound=type[Extension])


def register(extension: E) -> E:
    """Registers a class under its name until Python ends. It can be used as a decorator.

    A class of the same name and with the same parameters replaces the earlier one, as when a notebook's cell runs again.
    """
    kind = _kind(extension)
    _, needed, optional = _KINDS[kind]
    for part in ("name", "title", "source"):
        found = getattr(extension, part)
        if not isinstance(found, str) or not found:
            raise ArgumentError(f"{part}: {extension.__name__}.{part} = {found!r} is not allowed: expected a text", part)
    for method in needed:
        if getattr(extension, method) is getattr(_KINDS[kind][0], method):
            raise ArgumentError(f"extension: {extension.__name__} has no method {method}, which a {kind} needs", "extension")
    parameters = _parameters(extension)
    described = []
    for parameter in parameters.values():
        parameter.check()
        described.append(_Described(
            parameter.name, parameter.kind, parameter.unit, float(parameter.least), float(parameter.most), parameter.choices,
            parameter.check_value(parameter.default), parameter.source, parameter.doc))
    moderate = []
    for attribute, value in getattr(extension, "moderate", {}).items():
        if attribute not in parameters:
            raise ArgumentError(f"moderate: {extension.__name__} has no parameter {attribute}", "moderate")
        moderate.append((parameters[attribute].name, parameters[attribute].check_value(value)))
    methods = [method for method in (*needed, *optional) if callable(getattr(extension, method, None))]
    _native.register_extension(extension, _Description(
        kind, extension.name, extension.title, extension.source, described, methods, bool(getattr(extension, "waits_for_delivery", False)),
        bool(getattr(extension, "endless", False)), bool(getattr(extension, "scalable", False)), moderate))
    _REGISTERED[kind, extension.name] = extension
    return extension


def check(extension: type[Extension]) -> None:
    """Runs the conformance suite over a registered class, with the defaults of its parameters.

    It is the suite of the simulator's own algorithms: packets are conserved, the same seed gives the same run, a copy behaves as the
    original, windows stay within bounds, and so on. A `ConformanceError` names the check that fails, and the fault.
    """
    kind = _kind(extension)
    if _REGISTERED.get((kind, extension.name)) is not extension:
        raise ArgumentError(f"extension: {extension.__name__} is not registered: register({extension.__name__}) does so", "extension")
    _native.check_extension(kind, extension.name)


def registered() -> list[type[Extension]]:
    """Returns the registered classes, in the order of their names."""
    return [_REGISTERED[key] for key in sorted(_REGISTERED)]


@dataclass(frozen=True)
class _Described:
    name: str
    kind: str
    unit: str
    least: float
    most: float
    choices: list[str]
    default: Any
    source: str
    doc: str


def _kind(extension: object) -> str:
    if isinstance(extension, type):
        for kind, (base, _, _) in _KINDS.items():
            if issubclass(extension, base) and extension is not base:
                return kind
    raise ArgumentError(f"extension: {extension!r} is not allowed: expected a class made from Law, Source or Control", "extension")


def _parameters(extension: type[Extension]) -> dict[str, _Parameter]:
    found: dict[str, _Parameter] = {}
    for one in reversed(extension.__mro__):
        found.update({attribute: value for attribute, value in vars(one).items() if isinstance(value, _Parameter)})
    return found


def _used(text: str) -> list[type[Extension]]:
    """Returns the registered classes whose names a scenario has."""
    words = set(re.findall(r"[A-Za-z0-9-]+", text))
    return [extension for (_, name), extension in sorted(_REGISTERED.items()) if name in words]


def _identity(extensions: Sequence[type[Extension]]) -> str:
    """Returns the names of classes with a digest of their code, for the version of results; nothing for no classes."""
    if not extensions:
        return ""
    return "+" + ",".join(f"{extension.name}:{_digest(extension)}" for extension in extensions)


def _digest(extension: type[Extension]) -> str:
    digest = hashlib.sha256()
    for one in extension.__mro__:
        if one.__module__ in (__name__, "builtins"):
            continue
        try:
            digest.update(inspect.getsource(one).encode())
        except (OSError, TypeError):
            for attribute, value in sorted(vars(one).items()):
                code = getattr(value, "__code__", None)
                digest.update(repr((attribute, code.co_code, code.co_consts, code.co_names) if code else attribute).encode())
    return digest.hexdigest()[:12]
