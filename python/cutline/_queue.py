"""A queue that is stepped by hand: the common part of the classes of `cutline.aqm`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from . import _native, _toml
from .errors import ArgumentError

__all__ = ["Departure", "Dropped", "Parameter", "Queue", "Verdict", "tsq_parameters"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of an AQM."""

    name: str
    """The key in a scenario; the argument has underscores."""
    kind: str
    allowed: str
    """The allowed values, with the unit."""
    default: str
    source: str
    """Source of the default."""
    meaning: str

    @property
    def argument(self) -> str:
        """The name of the argument."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Verdict:
    """The decision on an arrival. It is true if the packet is stored."""

    kind: str
    """pass, mark or drop."""
    reason: str | None = None
    """Reason of a drop: early, by the AQM, or overflow."""

    def __bool__(self) -> bool:
        return self.kind != "drop"


@dataclass(frozen=True)
class Departure:
    """A packet that leaves the queue for the link."""

    packet: Any
    size: int
    arrived_s: float
    """The time at which it was enqueued."""
    sojourn_s: float
    """The time for which it has waited."""
    marked: bool
    """True if it is marked now."""


@dataclass(frozen=True)
class Dropped:
    """A packet that was stored and has been dropped since."""

    packet: Any
    size: int
    reason: str
    """early or overflow."""


class Queue:
    """A queue in front of a link. The AQMs are classes of `cutline.aqm`; this is their common part."""

    name: ClassVar[str] = ""
    """The name of the AQM in scenarios."""

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Returns the parameters of the AQM."""
        return tuple(Parameter(*one) for name, _, _, _, parts in _native.aqms() if name == cls.name for one in parts)

    def __init__(
        self, rate: str | float, *, limit: str = "1000 packets", ecn: bool = True, tsq: bool | Mapping[str, Any] = False,
        seed: int = 1, **parameters: Any,
    ) -> None:
        """Makes an empty queue.

        rate: the rate of the link behind it, such as "10 Mbit/s", or in bit/s.
        limit: the largest backlog, such as "400 packets" or "600 kB".
        ecn: whether packets that may be marked are marked instead of dropped.
        tsq: TSQ on top of a law, or its parameters as a mapping.
        seed: the seed of the random numbers.
        parameters: those of the AQM, by their names with underscores; None for the default.
        """
        if not self.name:
            raise ArgumentError("Queue: choose the class of an AQM, such as cutline.aqm.Pi", "name")
        known = {parameter.argument: parameter.name for parameter in self.parameters()}
        table: dict[str, Any] = {"aqm": self.name, "limit": limit, "ecn": ecn}
        if tsq is not False:
            table["tsq"] = tsq if isinstance(tsq, bool) else {key.replace("_", "-"): value for key, value in tsq.items()}
        given = {name: value for name, value in parameters.items() if value is not None}
        table |= {known.get(name, name.replace("_", "-")): value for name, value in given.items()}
        self._native = _native.Queue.build(f"queue = {_toml.value('parameters', 'queue', table)}\n", _rate(rate), _whole("seed", seed, 0, 2**64))
        self._packets: dict[int, Any] = {}
        self._next = 0

    def enqueue(
        self, now: float, packet: Any = None, *, size: int = 1500, hint: int = 16, flow: int = 0, ecn: bool = False,
        scalable: bool = False,
    ) -> Verdict:
        """Offers a packet, which may be any object, of so many bytes.

        hint: its delay hint, 1 (as little delay as possible) to 16 (throughput only).
        flow: a number that its flow's packets share, for queues that separate flows.
        ecn, scalable: whether it may be marked, and whether its sender responds to marks in proportion to their share.
        """
        size, hint = _whole("size", size, 1, 2**31), _whole("hint", hint, 1, 2**16)
        number = self._next
        kind, reason = self._native.enqueue(_time(now), number, size, hint, _whole("flow", flow, 0, 2**32), (ecn or scalable, scalable))
        self._next += 1
        if kind != "drop":
            self._packets[number] = packet
        return Verdict(kind, reason)

    def dequeue(self, now: float) -> Departure | None:
        """Takes the next packet; None if there is none. Call it when the link is free."""
        found = self._native.dequeue(_time(now))
        if found is None:
            return None
        number, size, arrived, marked = found
        return Departure(self._packets.pop(number), size, arrived, max(now - arrived, 0.0), marked)

    def shed(self) -> list[Dropped]:
        """Returns the packets that were stored and have been dropped since the last call."""
        return [Dropped(self._packets.pop(number), size, reason) for number, size, reason in self._native.shed()]

    def advance(self, now: float) -> None:
        """Takes the due steps of the control law, so that `probability` is up to date."""
        self._native.advance(_time(now))

    def set_rate(self, now: float, rate: str | float) -> None:
        """Changes the rate of the link."""
        self._native.set_rate(_time(now), _rate(rate))

    def __len__(self) -> int:
        """The number of packets that wait."""
        return self._native.backlog()[0]

    @property
    def backlog_bytes(self) -> int:
        """The number of bytes that wait."""
        return self._native.backlog()[1]

    @property
    def probability(self) -> float | None:
        """The probability of a drop or mark as of the last call; None if the queue has no such law."""
        return self._native.probability()

    @property
    def readings(self) -> dict[str, float]:
        """Values of RED and its variants: average and target queue, packets, and max_p."""
        names = ("average_packets", "max_p", "target_packets")
        return {name: value for name, value in zip(names, self._native.readings()) if value is not None}

    @property
    def stats(self) -> dict[str, tuple[int, int]]:
        """The counters since the queue was made, in packets and bytes."""
        return {name: (packets, size) for name, packets, size in self._native.stats()}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} packets, {self.backlog_bytes} B>"


def tsq_parameters() -> tuple[Parameter, ...]:
    """Returns the parameters of TSQ, which the argument tsq takes as a mapping."""
    return tuple(Parameter(*one) for one in _native.tsq_parameters())


def _rate(rate: str | float) -> str:
    if isinstance(rate, str):
        return rate
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 1 <= rate < 2**63:
        raise ArgumentError(f"rate: {rate!r} is not allowed: expected a rate such as \"10 Mbit/s\", or a number of bit/s", "rate")
    return f"{round(rate)} bit/s"


def _whole(parameter: str, number: int, least: int, end: int) -> int:
    number = _toml._plain(number)
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number < end:
        raise ArgumentError(f"{parameter}: {number!r} is not allowed: expected a whole number from {least} to {end - 1}", parameter)
    return number


def _time(now: float) -> float:
    now = _toml._plain(now)
    if isinstance(now, bool) or not isinstance(now, (int, float)):
        raise ArgumentError(f"now: {now!r} is not allowed: expected seconds", "now")
    return float(now)
